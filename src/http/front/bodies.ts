// Parses request bodies. An empty body counts as no body, whatever its Content-Type; any other must be declared as JSON
// and parse as UTF-8 JSON.
import type { FastifyInstance } from 'fastify';
import { invalid, Refusal } from '../../domain/errors.ts';
import { repeatedKey } from '../../domain/strict-json.ts';
import { TransportRefusal } from './reply.ts';

const JSON_TYPE = 'application/json';
const NOT_JSON = 'application/octet-stream';
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function parseBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  // Fastify rejects a malformed Content-Type even without a body, so it is replaced before Fastify reads it.
  app.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) headers['content-type'] = NOT_JSON;
    done();
  });
  // Named, because Fastify remembers the parser of a header only if it has one for its type.
  app.addContentTypeParser(JSON_TYPE, { parseAs: 'buffer' }, (_request, bytes: Buffer, done) => {
    const text = decode(bytes);
    done(null, text.trim() === '' ? undefined : bodyIn(text));
  });
  app.addContentTypeParser(NOT_JSON, { parseAs: 'buffer' }, (_request, bytes: Buffer, done) => {
    if (decode(bytes).trim() === '') return done(null, undefined);
    throw new TransportRefusal(415, 'invalid_parameters', {
      en: 'The body must be JSON. Send it with Content-Type: application/json.',
      zh: '请求体必须是 JSON，请使用 Content-Type: application/json。',
    });
  });
}

function bodyIn(text: string): unknown {
  const repeated = repeatedKey(text);
  const body = parse(text);
  // Not the same as no body: a client that serializes a missing object must not revoke a certificate by it.
  if (body === null) throw nullBody();
  if (repeated !== undefined) throw twice(repeated);
  return body;
}

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw notJson();
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

const twice = (key: string): Refusal =>
  invalid(
    key.slice(0, 64),
    'An object of the body has this key twice. Send it once.',
    '请求体中同一对象包含重复的键，请只发送一次。',
  );

const nullBody = (): Refusal =>
  new Refusal('invalid_parameters', {
    reason: { en: 'The body is null. Send an object, or no body.', zh: '请求体为 null，请发送对象，或不发送请求体。' },
  });

// JSON.parse quotes its input in the error message, and the input may hold a secret.
const notJson = () =>
  new Refusal('invalid_parameters', {
    reason: { en: 'The body is not valid JSON in UTF-8.', zh: '请求体不是有效的 UTF-8 JSON。' },
  });
