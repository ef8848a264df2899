// reseal sandbox dns set | clear | list, reseal sandbox http set | clear | list: the DNS records and files that the
// sandbox serves. They can be changed before it starts or while it runs.
import type { Command } from './command.ts';
import { table } from './values.ts';

const MAX_SHOWN = 100;
/** Fits one line of a table: bounded, without control characters. */
const shown = (text: string): string =>
  text.replace(/\p{C}/gu, '?').slice(0, MAX_SHOWN) + (text.length > MAX_SHOWN ? '…' : '');

const cleared = (count: number) => ({
  json: { cleared: count },
  text: count === 0 ? 'There was nothing to clear.' : 'Cleared.',
});

export const sandboxDnsSet: Command = {
  store: 'none',
  about: 'set DNS records in the sandbox; replaces those of the same name and type',
  examples: [
    'sandbox dns set NAME TYPE VALUE…',
    `sandbox dns set _validation-persist.example.com TXT 'ca.example; accounturi=https://ca.example/accounts/42'`,
    `sandbox dns set example.com CAA '0 issue "ca.example"' '0 iodef "mailto:security@example.com"'`,
    'sandbox dns set www.example.com A 127.0.0.1',
    'sandbox dns set www.example.com CAA servfail   # or nxdomain, nodata, refused, silence',
  ],
  positionals: ['NAME', 'TYPE', 'VALUE…'],
  options: {},
  async run({ positionals: [name = '', type = '', ...values] }, context) {
    const records = await (await context.sandboxWorld()).setDns(name, type, values);
    return {
      json: { dns: records },
      text: records.values.map((value) => `${records.name}  ${records.type}  ${shown(value)}`).join('\n'),
    };
  },
};

export const sandboxDnsClear: Command = {
  store: 'none',
  about: 'delete the records set for a name, or only those of one type',
  examples: ['sandbox dns clear NAME [TYPE]', 'sandbox dns clear www.example.com CAA'],
  positionals: ['NAME', '[TYPE]'],
  options: {},
  async run({ positionals: [name = '', type] }, context) {
    return cleared(await (await context.sandboxWorld()).clearDns(name, type));
  },
};

export const sandboxDnsList: Command = {
  store: 'none',
  about: 'list the records that were set',
  examples: ['sandbox dns list', 'sandbox dns list --json'],
  positionals: [],
  options: {},
  async run(_given, context) {
    const { dns } = (await context.sandboxWorld()).list();
    const rows = dns.flatMap(({ name, type, values }) => values.map((value) => [name, type, shown(value)]));
    return { json: { dns }, text: rows.length === 0 ? 'No records are set.' : table(['NAME', 'TYPE', 'VALUE'], rows) };
  },
};

export const sandboxHttpSet: Command = {
  store: 'none',
  about: 'set the text that the sandbox’s web server returns at a URL',
  examples: [
    'sandbox http set URL TEXT',
    `sandbox http set http://www.example.com/.well-known/pki-validation/fileauth.txt 'the text to be found'`,
  ],
  positionals: ['URL', 'TEXT'],
  options: {},
  async run({ positionals: [address = '', text = ''] }, context) {
    const file = await (await context.sandboxWorld()).setHttp(address, text);
    const { hostname } = new URL(file.url);
    return {
      json: { http: file },
      text: `${file.url}  ${shown(file.text)}\n${hostname} is on this machine, unless its DNS records say otherwise.`,
    };
  },
};

export const sandboxHttpClear: Command = {
  store: 'none',
  about: 'delete the text set at a URL',
  examples: ['sandbox http clear URL'],
  positionals: ['URL'],
  options: {},
  async run({ positionals: [address = ''] }, context) {
    return cleared(await (await context.sandboxWorld()).clearHttp(address));
  },
};

export const sandboxHttpList: Command = {
  store: 'none',
  about: 'list the URLs and texts that were set',
  examples: ['sandbox http list', 'sandbox http list --json'],
  positionals: [],
  options: {},
  async run(_given, context) {
    const { http } = (await context.sandboxWorld()).list();
    const rows = http.map(({ url, text }) => [url, shown(text)]);
    return { json: { http }, text: rows.length === 0 ? 'No files are set.' : table(['URL', 'TEXT'], rows) };
  },
};
