// Everything that goes wrong leaves through here, in the envelope: what use cases refuse, what Fastify finds, what
// the HTTP parser finds before there is a request. What is none of these is a bug: logged whole, answered bare.
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import type { NewId } from '../../domain/ids.ts';
import { type Locale, preferredLocale } from '../../kernel/locale.ts';
import { errorLine, type Log } from '../../kernel/log.ts';
import { type ErrorAnswer, errorAnswer, TransportRefusal } from './reply.ts';
import type { RecordRequest } from './request-log.ts';
import { validationRefusal } from './schema-validation.ts';

export function answerErrors(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((error, request, reply) => sendFailure(error, request, reply, log));
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined) {
      throw new TransportRefusal(400, 'invalid_parameters', {
        en: 'The Host header is missing.',
        zh: '缺少 Host 请求头。',
      });
    }
  });
}

/** `answer` says it in the shape that the part of the interface has. */
export function sendFailure(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: Log,
  answer: (
    refusal: Refusal,
    locale: Locale,
    requestId: string,
  ) => Omit<ErrorAnswer, 'body'> & { body: object } = errorAnswer,
): FastifyReply {
  const refusal = refusalFrom(error);
  if (refusal.code === 'service_internal_error') log(errorLine(error, request.id));
  const { status, headers, body } = answer(refusal, localeOf(request), request.id);
  request.outcome = refusal.code;
  return reply.code(status).headers(headers).header('x-request-id', request.id).type('application/json').send(body);
}

/** What the caller asked for, else what the account prefers, else English. */
export function localeOf(request: FastifyRequest): Locale {
  return preferredLocale(request.headers['accept-language']) ?? request.caller?.account.locale ?? 'en';
}

const FASTIFY_REFUSALS: Readonly<Record<string, () => Refusal>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () =>
    new TransportRefusal(413, 'invalid_parameters', {
      en: 'The body is larger than 256 KiB.',
      zh: '请求体超过 256 KiB。',
    }),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new TransportRefusal(400, 'invalid_parameters', {
      en: 'The body is not as long as announced.',
      zh: '请求体长度与声明不符。',
    }),
  FST_ERR_BAD_URL: () =>
    new TransportRefusal(400, 'invalid_parameters', {
      en: 'The path has a broken percent-encoding.',
      zh: '路径中的百分号编码有误。',
    }),
  // The caller hung up while we were reading: nobody is left to read the answer.
  ECONNRESET: () =>
    new TransportRefusal(400, 'invalid_parameters', { en: 'The request was cut off.', zh: '请求被中断。' }),
};

function refusalFrom(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const { validation, code } = error as Partial<FastifyError>;
  if (validation) return validationRefusal(validation);
  return FASTIFY_REFUSALS[code ?? '']?.() ?? new Refusal('service_internal_error');
}

const PARSER_REFUSALS: Readonly<Record<string, { status: number; en: string; zh: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, en: 'The header block is larger than 16 KiB.', zh: '请求头超过 16 KiB。' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, en: 'The request took too long to arrive.', zh: '请求发送超时。' },
};
const NOT_HTTP = { status: 400, en: 'This is not a valid HTTP request.', zh: '不是有效的 HTTP 请求。' };

/** Faults found before there is a request: no route, no caller, only a socket to answer on. */
export function answerTransportErrors(app: FastifyInstance, newId: NewId, record: RecordRequest): void {
  const answersDue = new WeakMap<Duplex, number>();
  app.server.prependListener('request', ({ socket }, response) => {
    answersDue.set(socket, (answersDue.get(socket) ?? 0) + 1);
    response.once('close', () => answersDue.set(socket, (answersDue.get(socket) ?? 1) - 1));
  });

  function refuse(socket: Duplex, refusal: TransportRefusal, method: string): void {
    const requestId = newId();
    const { status, headers, body } = errorAnswer(refusal, 'en', requestId);
    const text = JSON.stringify(body);
    const fields = {
      ...headers,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      'x-request-id': requestId,
      connection: 'close',
    };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`, () => socket.destroy());
    const remote = (socket as Socket).remoteAddress ?? '';
    const line = { request_id: requestId, method, route: null, status, code: refusal.code, ms: 0, remote };
    record({ ...line, account_id: null, key_id: null });
  }

  app.server.removeAllListeners('clientError');
  app.server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // An answer that is still due would come after this one, and be taken for that of another request.
    if (error.code === 'ECONNRESET' || !socket.writable || (answersDue.get(socket) ?? 0) > 0) {
      socket.destroy();
      return;
    }
    const { status, ...reason } = PARSER_REFUSALS[error.code ?? ''] ?? NOT_HTTP;
    refuse(socket, new TransportRefusal(status, 'invalid_parameters', reason), '-');
  });
  // Left alone, Node closes a CONNECT without a word: we are no proxy, and say so.
  app.server.on('connect', (_request, socket) => {
    refuse(
      socket,
      new TransportRefusal(405, 'method_not_allowed', undefined, { allow: 'GET, HEAD, POST, PUT' }),
      'CONNECT',
    );
  });
  // Left alone, Node answers an unknown Expect header with a bare 417. We may ignore it, and do.
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));
}
