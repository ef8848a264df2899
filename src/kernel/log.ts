// Log lines: one wide JSON object per event, from a closed set of shapes. Secrets cannot reach a line because no
// shape has a field for what callers send: a request is named by its route pattern, never by its address, and only
// ids that were found in the store are written. Messages of unexpected errors are masked.

export interface RequestLine {
  readonly event: 'request';
  readonly request_id: string;
  readonly method: string;
  /** The pattern, such as /openapi/v3/orders/:id; null when nothing matched. */
  readonly route: string | null;
  readonly status: number;
  /** `success`, the code of the error, or `aborted` when the caller left before the answer. */
  readonly code: string;
  readonly ms: number;
  readonly account_id: string | null;
  readonly key_id: string | null;
  readonly remote: string;
}

export interface NoticeLine {
  readonly event: 'listening' | 'stopping' | 'stopped' | 'store_unavailable' | 'issuers_changed' | 'warning';
  readonly text: string;
}

/** An event that was given up: somebody has to know. */
export interface GaveUpLine {
  readonly event: 'callback_gave_up';
  readonly delivery_id: string;
  readonly account_id: string;
  readonly order_id: string;
  readonly action: string;
  readonly attempts: number;
}

export interface FaultLine {
  readonly event: 'error';
  readonly request_id: string | null;
  readonly name: string;
  readonly code: string | null;
  readonly message: string;
  readonly stack: readonly string[];
}

export type LogLine = RequestLine | NoticeLine | GaveUpLine | FaultLine;
export type Log = (line: LogLine) => void;

export function faultLine(error: unknown, requestId: string | null): FaultLine {
  const { name = 'Error', code, message = '', stack = '' } = error instanceof Error ? (error as Coded) : {};
  return {
    event: 'error',
    request_id: requestId,
    name,
    code: typeof code === 'string' ? code : null,
    message: mask(message),
    // The first line repeats the message; the frames name only our own code.
    stack: stack
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .map((line) => line.trim()),
  };
}
type Coded = Error & { code?: unknown };

/** Errors of libraries quote what they choked on. Quoted text, long words and numbers are where a secret would be. */
export function mask(message: string): string {
  return message
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, '"…"')
    .replace(/[A-Za-z0-9+/_=-]{20,}|\d{4,}/g, '…')
    .slice(0, 500);
}

export function logTo(stream: { write(text: string): unknown }, format: 'json' | 'text', now: () => number): Log {
  const render = format === 'json' ? asJson : asText;
  return (line) => stream.write(`${render(line, new Date(now()).toISOString())}\n`);
}

const asJson = (line: LogLine, time: string): string => JSON.stringify({ time, ...line });

function asText(line: LogLine, time: string): string {
  const at = time.slice(11, 19);
  switch (line.event) {
    case 'request':
      return `${at} ${line.status} ${line.method} ${line.route ?? '(no route)'} ${line.code} ${line.ms} ms`;
    case 'callback_gave_up':
      return `${at} ${line.event} ${line.action} ${line.delivery_id} of order ${line.order_id}, ${line.attempts} attempts`;
    case 'error':
      return `${at} fault ${line.name}: ${line.message}\n    ${line.stack.join('\n    ')}`;
    default:
      return `${at} ${line.event} ${line.text}`;
  }
}
