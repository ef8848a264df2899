// Parses request bodies. An empty body counts as no body, whatever its Content-Type; any other must be declared as JSON
// and parse as UTF-8 JSON.
import type { FastifyInstance } from 'fastify';
import { invalid, Refusal } from '../../domain/errors.ts';
import { TransportRefusal } from './reply.ts';

const NOT_JSON = 'application/octet-stream';
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function parseBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  // Fastify rejects a malformed Content-Type even without a body, so it is replaced before Fastify reads it.
  app.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) headers['content-type'] = NOT_JSON;
    done();
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (request: { headers: Headers }, bytes: Buffer) => {
    const text = decode(bytes);
    if (text.trim() === '') return undefined;
    if (request.headers['content-type'] === NOT_JSON) {
      throw new TransportRefusal(415, 'invalid_parameters', {
        en: 'The body must be JSON. Send it with Content-Type: application/json.',
        zh: '请求体必须是 JSON，请使用 Content-Type: application/json。',
      });
    }
    requireShallow(bytes);
    const body = parse(text);
    // Not the same as no body: a client that serializes a missing object must not revoke a certificate by it.
    if (body === null) throw NULL_BODY();
    requireUniqueKeys(text);
    return body;
  });
}
type Headers = { 'content-type'?: string | undefined };

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw notJson();
  }
}

const MAX_DEPTH = 64;
const [QUOTE, BACKSLASH] = [0x22, 0x5c];
/** Of both kinds of brackets, which differ in one bit. */
const [OPENING, CLOSING, EITHER_KIND] = [0x7b, 0x7d, 0x20];

/** Counted before it is parsed: a body of nothing but brackets takes many times as long to parse as any other. */
function requireShallow(bytes: Buffer): void {
  let depth = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) isText = !isText;
    else if (isText) at += byte === BACKSLASH ? 1 : 0;
    else if ((byte | EITHER_KIND) === CLOSING) depth -= 1;
    else if ((byte | EITHER_KIND) === OPENING && ++depth > MAX_DEPTH) throw tooDeep();
  }
}

const tooDeep = () =>
  new Refusal('invalid_parameters', {
    reason: {
      en: `The body nests deeper than ${MAX_DEPTH} levels. No field of this service does.`,
      zh: `请求体嵌套超过 ${MAX_DEPTH} 层，本服务没有这样的字段。`,
    },
  });

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

/** The structure of a valid JSON text: its brackets, and its strings, each with the colon that makes it a key. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"\s*:?|[{}]/gs;

/**
 * Refuses a key that one object has twice: a proxy, a log or a signer in front of the service may read the first value,
 * and JSON.parse takes the last.
 */
export function requireUniqueKeys(text: string): void {
  const open: Set<string>[] = [];
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '{') open.push(new Set());
    else if (token === '}') open.pop();
    else if (token.endsWith(':')) {
      const key = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1));
      if (open.at(-1)?.has(key)) throw twice(key);
      open.at(-1)?.add(key);
    }
  }
}

const twice = (key: string): Refusal =>
  invalid(
    key.slice(0, 64),
    'An object of the body has this key twice. Send it once.',
    '请求体中同一对象包含重复的键，请只发送一次。',
  );

const NULL_BODY = (): Refusal =>
  new Refusal('invalid_parameters', {
    reason: { en: 'The body is null. Send an object, or no body.', zh: '请求体为 null，请发送对象，或不发送请求体。' },
  });

// JSON.parse quotes its input in the error message, and the input may hold a secret.
const notJson = () =>
  new Refusal('invalid_parameters', {
    reason: { en: 'The body is not valid JSON in UTF-8.', zh: '请求体不是有效的 UTF-8 JSON。' },
  });
