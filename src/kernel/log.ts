// Structured log: one JSON object per event, from a closed set of shapes. Secrets cannot reach a line because no shape
// has a field for caller input: a request is logged by its route pattern, never by its URL, and only ids that exist in
// the store are written. Messages of unexpected errors are masked.

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
  readonly key_id: string | null;
  readonly remote: string;
}

export interface NoticeLine {
  readonly event:
    | 'listening'
    | 'stopping'
    | 'stopped'
    | 'process_started'
    | 'process_ended'
    | 'store_unavailable'
    | 'issuers_changed'
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
  readonly name: string;
  readonly code: string | null;
  readonly message: string;
  readonly stack: readonly string[];
}

export type LogLine = RequestLine | NoticeLine | GaveUpLine | ErrorLine;
export type Log = (line: LogLine) => void;

export function errorLine(error: unknown, requestId: string | null): ErrorLine {
  const { name = 'Error', code, message = '', stack = '' } = error instanceof Error ? (error as Coded) : {};
  return {
    event: 'error',
    request_id: requestId,
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

/**
 * Lines of requests that end in one event-loop turn are written together; any other line is written at once. Whole lines
 * are written, so that those of several processes do not mix.
 */
export function logTo(
  stream: { write(text: string): unknown },
  { format, process: name }: LogFormat,
  now: () => number,
): Log {
  const render = format === 'json' ? asJson : asText;
  let pending = '';
  const flush = () => {
    const text = pending;
    pending = '';
    if (text !== '') stream.write(text);
  };
  process.on('exit', flush);
  return (line) => {
    const text = `${render(line, new Date(now()).toISOString(), name)}\n`;
    if (line.event === 'request' && pending === '') setImmediate(flush);
    pending += text;
    if (line.event !== 'request' || pending.length > MAX_PENDING) flush();
  };
}

/** A pipe takes this much in one piece (PIPE_BUF is 4 KiB): longer writes of several processes could mix. */
const MAX_PENDING = 3_500;

const asJson = (line: LogLine, time: string, process?: string): string => JSON.stringify({ time, process, ...line });

function asText(line: LogLine, time: string, process?: string): string {
  const at = `${time.slice(11, 19)}${process === undefined ? '' : ` [${process}]`}`;
  switch (line.event) {
    case 'request':
      return `${at} ${line.status} ${line.method} ${line.route ?? '(no route)'} ${line.code} ${line.ms} ms`;
    case 'callback_gave_up':
      return `${at} ${line.event} ${line.action} ${line.delivery_id} of order ${line.order_id}, ${line.attempts} attempts`;
    case 'error':
      return `${at} error ${line.name}: ${line.message}\n    ${line.stack.join('\n    ')}`;
    default:
      return `${at} ${line.event} ${line.text}`;
  }
}
