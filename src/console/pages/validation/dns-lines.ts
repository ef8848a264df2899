// TXT records as lines to paste: into a zone file, and into nsupdate.

const TTL = 300;
/** A TXT record is made of strings of at most 255 bytes (RFC 1035, 3.3). */
const MAX_STRING = 255;

export interface TxtRecord {
  readonly host: string;
  readonly value: string;
}

const quoted = (value: string): string =>
  (value.match(new RegExp(`.{1,${MAX_STRING}}`, 'gsu')) ?? [''])
    .map((part) => `"${part.replace(/["\\]/g, '\\$&')}"`)
    .join(' ');

const absolute = (host: string): string => (host.endsWith('.') ? host : `${host}.`);

/** Names that need the same record need it once. */
const distinct = (records: readonly TxtRecord[]): string[] => [
  ...new Set(records.map(({ host, value }) => `${absolute(host)} ${TTL} IN TXT ${quoted(value)}`)),
];

export const zoneLines = (records: readonly TxtRecord[]): string => distinct(records).join('\n');

export const nsupdateLines = (records: readonly TxtRecord[]): string =>
  [...distinct(records).map((line) => `update add ${line}`), 'send'].join('\n');
