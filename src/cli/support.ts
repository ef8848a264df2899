// reseal audit | find: who did what, and what became of it, across accounts. Both only read.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { AuditEntry } from '../domain/access/ports.ts';
import { parseDateTime } from '../domain/certificate/validity.ts';
import type { Found } from '../domain/support/ports.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Findings } from '../usecases/support/find-anything.ts';
import { entryEvent, type Story, type StoryEvent } from '../usecases/support/tell-story.ts';
import type { Command } from './command.ts';
import { duration, pageSize, table, time } from './values.ts';

const entryView = (entry: AuditEntry) => ({
  id: entry.id,
  at: time(entry.at),
  account_id: entry.accountId,
  actor: entry.actor,
  action: entry.action,
  subject: entry.subject,
  request_id: entry.requestId,
  details: entry.details,
});

const eventView = (event: StoryEvent) => ({
  at: time(event.at),
  event: event.event,
  actor: event.actor,
  request_id: event.requestId,
  details: event.details,
});

/** Details as name=value, without those that are empty. */
const wordsOf = (details: StoryEvent['details']): string =>
  Object.entries(details)
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');

const text = (given: unknown): string | undefined => (given === undefined ? undefined : String(given));

/** A date and time, or how long ago. */
function moment(option: string, given: unknown, now: number): number | undefined {
  if (given === undefined) return undefined;
  return parseDateTime(String(given)) ?? now - duration(option, given);
}

export const audit: Command = {
  store: 'existing',
  about: 'search the audit log, newest first',
  examples: [
    'audit',
    'audit --account ACCOUNT --since 24h',
    'audit --order ORDER',
    'audit --request REQUEST --json',
    'audit --actor alice --since 2026-11-01T00:00:00Z --until 2026-11-02T00:00:00Z',
  ],
  positionals: [],
  options: {
    account: { type: 'string', about: 'only of this account' },
    order: { type: 'string', about: 'only about this order and its certificates' },
    certificate: { type: 'string', about: 'only about this certificate' },
    request: { type: 'string', about: 'only by the request with this id' },
    actor: { type: 'string', about: 'only by this key id, operator, user of the command line, or "service"' },
    since: { type: 'string', about: 'from then on: a date and time, or how long ago, e.g. 24h' },
    until: { type: 'string', about: 'before then, likewise' },
    limit: { type: 'string', about: 'maximum number of rows (default 100)' },
    after: { type: 'string', about: 'continue after this row' },
  },
  async run({ options }, { withSupport, now }) {
    const query = {
      accountId: text(options.account),
      order: text(options.order),
      certificate: text(options.certificate),
      requestId: text(options.request),
      actor: text(options.actor),
      since: moment('since', options.since, now()),
      until: moment('until', options.until, now()),
    };
    const page = { after: text(options.after), limit: pageSize(options.limit) };
    const { entries, nextAfter } = await withSupport(({ searchAudit }) => searchAudit(query, page));
    const rows = entries.map((entry) => [
      time(entry.at),
      entry.action,
      entry.actor,
      entry.subject,
      entry.requestId ?? '-',
      wordsOf(entry.details),
    ]);
    const more = nextAfter === null ? '' : `\n\nThere may be more: --after ${nextAfter}`;
    return {
      json: { audit: entries.map(entryView), next_after: nextAfter },
      text: `${rows.length === 0 ? 'None.' : table(['AT', 'ACTION', 'ACTOR', 'SUBJECT', 'REQUEST', 'DETAILS'], rows)}${more}`,
    };
  },
};

export const find: Command = {
  store: 'existing',
  about: 'find a serial number, name, id or key fingerprint in any account, and tell what happened to its order',
  examples: [
    'find www.example.com',
    'find 01kc…   # an id of a request, order, certificate, delivery, account or key',
    'find 4a:0f:…   # a serial number, or the SHA-256 of a public key',
    'find REQUEST --log reseal.log   # also reads the service’s JSON log; - is standard input',
  ],
  positionals: ['ANYTHING'],
  options: { log: { type: 'string', about: 'log file to search for it too, for requests that changed nothing' } },
  async run({ positionals: [anything = ''], options }, { withSupport }) {
    const lines = options.log === undefined ? [] : await linesAbout(anything.trim(), String(options.log));
    const related = lines.flatMap(({ order_id, certificate_id }) => [order_id, certificate_id]).filter(isText);
    const findings = await withSupport(({ findAnything }) => findAnything(anything, related));
    const isEmpty = findings.found.length + findings.ofRequest.length + lines.length === 0;
    return {
      json: { ...findingsView(findings), log: lines },
      text: isEmpty ? NOTHING : findingsText(findings, lines),
      exitCode: isEmpty ? EXIT.refused : EXIT.ok,
    };
  },
};

const NOTHING = `Nothing is known under that. A request leaves a trace here only if it changed something: one that was refused
or that only read is in the log of the service. Search both: reseal find REQUEST --log FILE`;

const findingsView = ({ found, ofRequest, stories, furtherOrders }: Findings) => ({
  found: found.map(({ kind, text, accountId, orderId, certificateId }) => ({
    ...{ kind, text, account_id: accountId, order_id: orderId, certificate_id: certificateId },
  })),
  request: ofRequest.map(entryView),
  stories: stories.map(({ account, order, waiting, events }) => ({
    account: { id: account.id, name: account.name, suspended_at: account.suspendedAt && time(account.suspendedAt) },
    order: {
      ...{ id: order.id, product: order.productId, status: order.status, alternative_id: order.alternativeId },
      ...{ dns_names: order.names, certificate_id: order.currentCertificateId },
      pending_certificate_id: order.pendingCertificateId,
    },
    waiting: waiting
      ? { next_check_at: time(waiting.dueAt), expires_at: time(waiting.expiresAt), findings: waiting.findings }
      : null,
    events: events.map(eventView),
  })),
  further_orders: furtherOrders,
});

function findingsText({ found, ofRequest, stories, furtherOrders }: Findings, lines: readonly LogRecord[]): string {
  const parts = [
    lines.map((line) => `log: ${wordsOf(line)}`).join('\n'),
    found.length === 0 ? '' : foundTable(found),
    // What concerns an order is part of its story.
    stories.length > 0 ? '' : ofRequest.map((entry) => eventLine(entryEvent(entry), null)).join('\n'),
    ...stories.map((story) => storyText(story, new Set(ofRequest.map(({ requestId }) => requestId)))),
    furtherOrders.length === 0 ? '' : `Further orders: ${furtherOrders.join(' ')}`,
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

const foundTable = (found: readonly Found[]): string =>
  table(
    ['FOUND AS', 'TEXT', 'ACCOUNT', 'ORDER', 'CERTIFICATE'],
    found.map(({ kind, text, accountId, orderId, certificateId }) => [
      ...[kind, text, accountId ?? '-', orderId ?? '-', certificateId ?? '-'],
    ]),
  );

/** Marks the acts of the request that was asked for. */
function eventLine(event: StoryEvent, marked: ReadonlySet<string | null> | null): string {
  const { at, event: what, actor, requestId, details } = event;
  const mark = requestId !== null && marked?.has(requestId) ? '>' : ' ';
  const by = actor === null ? '' : ` by ${actor}`;
  const request = requestId === null ? '' : ` request=${requestId}`;
  return `${mark} ${time(at)}  ${what}${by}${request} ${wordsOf(details)}`.trimEnd();
}

function storyText({ account, order, waiting, events }: Story, marked: ReadonlySet<string | null>): string {
  const findings = Object.entries(waiting?.findings ?? {}).map(
    ([name, { problem, reason }]) => `  ${name}: ${problem}: ${reason.en}`,
  );
  return [
    `Order ${order.id} (${order.productId}) is ${order.status}: ${order.names.join(' ') || order.commonName}`,
    `Account ${account.id} (${account.name})${account.suspendedAt === null ? '' : `, suspended since ${time(account.suspendedAt)}`}`,
    ...(waiting ? [`Waits for domain validation; next check ${time(waiting.dueAt)}`, ...findings] : []),
    ...events.map((event) => eventLine(event, marked)),
  ].join('\n');
}

type LogRecord = Readonly<Record<string, string | number | null>>;
const MAX_LINES = 100;
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** The last lines of a JSON log that mention the text. Lines that are no JSON objects are skipped. */
async function linesAbout(wanted: string, file: string): Promise<LogRecord[]> {
  const found: LogRecord[] = [];
  const stream = file === '-' ? process.stdin : createReadStream(file);
  try {
    for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) {
      if (!line.includes(wanted)) continue;
      const record = recordIn(line);
      if (record) found.push(record);
      if (found.length > MAX_LINES) found.shift();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Problem(EXIT.usage, `${file} cannot be read (${code})`, 'Name a log file that this user may read.', {
      cause: error,
    });
  }
  return found;
}

/** Only flat values: stacks of errors stay in the log. */
function recordIn(line: string): LogRecord | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed !== 'object' || parsed === null) return undefined;
    return Object.fromEntries(
      Object.entries(parsed).filter(([, value]) => typeof value !== 'object' || value === null),
    );
  } catch {
    return undefined;
  }
}
