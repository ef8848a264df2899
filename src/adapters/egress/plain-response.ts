// Responses of the plainest form, which deliveries get nearly always: HTTP/1.1, a final status, the whole head at once, one
// Content-Length. Only after such a response is a connection kept. Node's parser and its streams would cost more than all
// else that a delivery does with it; what is not accepted here is left to it.

export interface ResponseHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PlainHead extends ResponseHead {
  /** Of the head itself, to the end of its blank line. */
  readonly headBytes: number;
  readonly bodyBytes: number;
}

export const MAX_HEAD_BYTES = 16 * 1024;

const HEAD_END = '\r\n\r\n';
const STATUS_LINE = /^HTTP\/1\.1 ([2-5]\d\d)(?: [\t\x20-\x7e]*)?$/;
/** A name directly followed by a colon, and printable ASCII: no folded line, no blank before the colon, no lone CR or LF. */
const FIELD = /^([\w!#$%&'*+.^`|~-]+):([\t\x20-\x7e]*)$/;
const LENGTH = /^\d{1,9}$/;
/** The only field that is repeated as a matter of course. Of others, Node keeps the first or joins them, by a list of its own. */
const REPEATED = 'set-cookie';
/** They never have a body, whatever their length says. */
const BODILESS: ReadonlySet<number> = new Set([204, 304]);

/** Undefined unless the bytes begin with a plain head. */
export function plainHead(bytes: Buffer): PlainHead | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0 || end + HEAD_END.length > MAX_HEAD_BYTES) return undefined;
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const status = Number(STATUS_LINE.exec(first)?.[1] ?? 0);
  if (status === 0) return undefined;
  // Without a prototype: a field may have the name of a property of every object.
  const headers: Record<string, string> = Object.create(null);
  for (const line of lines) {
    const [, written, value] = FIELD.exec(line) ?? [];
    if (written === undefined || value === undefined) return undefined;
    const name = written.toLowerCase();
    const before = headers[name];
    if (before !== undefined && name !== REPEATED) return undefined;
    headers[name] = before === undefined ? value.trim() : `${before}, ${value.trim()}`;
  }
  const { 'content-length': length = '', connection = 'keep-alive' } = headers;
  const isPlain = headers['transfer-encoding'] === undefined && connection.toLowerCase() === 'keep-alive';
  const hasLength = BODILESS.has(status) ? length === '0' : LENGTH.test(length);
  return isPlain && hasLength
    ? { status, headers, headBytes: end + HEAD_END.length, bodyBytes: Number(length) }
    : undefined;
}
