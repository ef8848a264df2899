// Structured log: one JSON object per event, from a closed set of shapes. Secrets cannot reach a line because no shape
// has a field for free caller input: a request is logged by its route pattern, never by its URL; ids are written only in
// the form in which the service makes them. The exception is the caller's own request id, bounded and printable. Messages
// of unexpected errors are masked.

export interface RequestLine {
  readonly event: 'request';
  readonly request_id: string;
  readonly method: string;
  /** Route pattern, such as /openapi/v3/orders/:id; null if no route matched. */
  readonly route: string | null;
  readonly status: number;
  /** `success`, the error code, or `aborted` if the caller disconnected before the response. */
  readonly code: string;
  readonly ms: number;
  readonly account_id: string | null;
  /** Of the caller; on 403 the one that was presented. */
  readonly key_id: string | null;
  readonly remote: string;
  /** As the path or the answer names them. */
  readonly order_id: string | null;
  readonly certificate_id: string | null;
  /** The request field that was refused. */
  readonly field: string | null;
  /** The caller's own X-Request-Id. */
  readonly caller_request_id: string | null;
}

interface OrderFacts {
  readonly account_id: string;
  readonly order_id: string;
  readonly certificate_id: string;
}

/** An issuance that no request waited for. */
export interface IssuanceLine extends OrderFacts {
  readonly event: 'issuance';
  readonly serial_number: string;
  readonly names: number;
  /** Since it was requested. */
  readonly waited_ms: number;
}

/** Nothing was signed, because an external linter objected or gave no answer. */
export interface LintLine extends OrderFacts {
  readonly event: 'lint';
  readonly serial_number: string;
  readonly outcome: 'refused' | 'failed';
  readonly text: string;
}

/** A check of a waiting certificate by schedule or on request. */
export interface CheckLine extends OrderFacts {
  readonly event: 'check';
  readonly method: string | null;
  readonly names: number;
  readonly passed: number;
  /** Kinds of failures, separated by blanks. */
  readonly problems: string;
  readonly tries: number;
  /** `held`: the account is suspended, and nothing was checked. */
  readonly outcome: 'issued' | 'waits' | 'given_up' | 'held';
  readonly ms: number;
}

/** A scheduled revocation that was carried out. */
export interface RevocationLine extends OrderFacts {
  readonly event: 'revocation';
  readonly reason: string;
  readonly cause: string;
  readonly late_ms: number;
}

/** An account is told that a certificate will expire. */
export interface ExpiryNoticeLine extends OrderFacts {
  readonly event: 'expiry_notice';
  readonly days: number;
}

export interface CrlLine {
  readonly event: 'crl_published';
  readonly issuer_id: string;
  readonly shard: number;
  readonly number: number;
  readonly entries: number;
  readonly changes: number;
}

export interface ResponderLine {
  readonly event: 'ocsp_responder_made';
  readonly issuer_id: string;
  readonly serial_number: string;
  readonly not_after: string;
}

export interface AttemptLine {
  readonly event: 'callback_attempt';
  readonly delivery_id: string;
  readonly account_id: string;
  readonly order_id: string;
  readonly action: string;
  readonly number: number;
  readonly outcome: string;
  readonly ms: number;
}

/** Old rows that a chore has deleted. */
export interface PrunedLine {
  readonly event: 'pruned';
  readonly table: string;
  readonly rows: number;
}

/** Lines like an earlier one that were left out within the time. */
export interface RepeatedLine {
  readonly event: 'repeated';
  readonly of: 'error' | 'store_unavailable';
  readonly times: number;
  readonly within_ms: number;
  readonly text: string;
}

export interface NoticeLine {
  readonly event:
    | 'store'
    | 'listening'
    | 'stopping'
    | 'stopped'
    | 'process_started'
    | 'process_ended'
    | 'store_unavailable'
    | 'store_damaged'
    | 'issuers_changed'
    | 'resolver_unreachable'
    | 'resolver_reachable'
    | 'warning';
  readonly text: string;
}

/** A callback delivery that failed for good. The operator must see it. */
export interface GaveUpLine {
  readonly event: 'callback_gave_up';
  readonly delivery_id: string;
  readonly account_id: string;
  readonly order_id: string;
  readonly action: string;
  readonly attempts: number;
}

export interface ErrorLine {
  readonly event: 'error';
  readonly request_id: string | null;
  /** The background job in which it came up; null for a request. */
  readonly chore: string | null;
  readonly name: string;
  readonly code: string | null;
  readonly message: string;
  readonly stack: readonly string[];
}

export type LogLine =
  | RequestLine
  | NoticeLine
  | IssuanceLine
  | LintLine
  | CheckLine
  | RevocationLine
  | ExpiryNoticeLine
  | CrlLine
  | ResponderLine
  | AttemptLine
  | GaveUpLine
  | PrunedLine
  | ErrorLine
  | RepeatedLine;
export type Log = (line: LogLine) => void;

export function errorLine(error: unknown, requestId: string | null, chore: string | null = null): ErrorLine {
  const { name = 'Error', code, message = '', stack = '' } = error instanceof Error ? (error as Coded) : {};
  return {
    event: 'error',
    request_id: requestId,
    chore,
    name,
    code: typeof code === 'string' ? code : null,
    message: mask(message),
    // Frames only: the first line of a stack repeats the unmasked message.
    stack: stack
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .map((line) => line.trim()),
  };
}
type Coded = Error & { code?: unknown };

/** Removes quoted text, long words and numbers: library errors quote their input, which may hold a secret. */
export function mask(message: string): string {
  return message
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, '"…"')
    .replace(/[A-Za-z0-9+/_=-]{20,}|\d{4,}/g, '…')
    .slice(0, 500);
}

interface LogFormat {
  readonly format: 'json' | 'text';
  /** Names the process, where several share the stream. */
  readonly process?: string | undefined;
}

/** Lines that come in bursts. */
const isFrequent = ({ event }: LogLine): boolean => event === 'request' || event === 'callback_attempt';

/**
 * Frequent lines of one event-loop turn are written together; any other line is written at once. Whole lines are written,
 * so that those of several processes do not mix.
 */
export function logTo(
  stream: { write(text: string): unknown },
  { format, process: name }: LogFormat,
  now: () => number,
): Log {
  const render = format === 'json' ? asJson(name) : asText(name);
  let [at, time] = [Number.NaN, ''];
  const timeNow = () => {
    const ms = now();
    // Lines come in bursts, and a date costs as much as half of a line.
    if (ms !== at) [at, time] = [ms, new Date(ms).toISOString()];
    return time;
  };
  let pending = '';
  let isTurn = false;
  const flush = () => {
    const text = pending;
    pending = '';
    if (text !== '') stream.write(text);
  };
  const endTurn = () => {
    isTurn = false;
    process.off('exit', endTurn);
    flush();
  };
  return (line) => {
    const text = `${render(line, timeNow())}\n`;
    if (pending.length + text.length > MAX_PENDING) flush();
    pending += text;
    if (!isFrequent(line)) return flush();
    if (isTurn) return;
    isTurn = true;
    setImmediate(endTurn);
    process.on('exit', endTurn);
  };
}

/** Linux takes 4 KiB into a pipe in one piece (PIPE_BUF): of longer writes, those of several processes could mix. */
const MAX_PENDING = 3_500;

type Render = (line: LogLine, time: string) => string;

/** The members before those of the line are put in as text, which spares a copy of each line. */
function asJson(process: string | undefined): Render {
  const named = process === undefined ? '' : `"process":${JSON.stringify(process)},`;
  return (line, time) => `{"time":"${time}",${named}${JSON.stringify(line).slice(1)}`;
}

const wordsOf = ({ event: _, ...fields }: LogLine): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');

const asText =
  (process: string | undefined): Render =>
  (line, time) =>
    `${time.slice(11, 19)}${process === undefined ? '' : ` [${process}]`} ${textOf(line)}`;

function textOf(line: LogLine): string {
  switch (line.event) {
    case 'request':
      return `${line.status} ${line.method} ${line.route ?? '(no route)'} ${line.code} ${line.ms} ms`;
    case 'error':
      return `error ${line.name}: ${line.message}\n    ${line.stack.join('\n    ')}`;
    case 'repeated':
      return `${line.of} ${line.times} more times: ${line.text}`;
    default:
      return `${line.event} ${'text' in line ? line.text : wordsOf(line)}`;
  }
}
