// Turns every error into an enveloped response: refusals of use cases, errors of Fastify, and errors of the HTTP parser.
// Anything else is a bug: logged in full, answered without detail.
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import type { NewId } from '../../domain/ids.ts';
import { type Locale, preferredLocale } from '../../kernel/locale.ts';
import { errorLine, type Log } from '../../kernel/log.ts';
import { codesOf } from './operation.ts';
import { type ErrorResponse, errorResponse, TransportRefusal } from './reply.ts';
import type { RecordRequest } from './request-log.ts';
import { validationRefusal } from './schema-validation.ts';

export function answerErrors(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((error, _request, reply) => sendError(error, reply, log));
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined) {
      throw new TransportRefusal(400, 'invalid_parameters', {
        en: 'The Host header is missing.',
        zh: '缺少 Host 请求头。',
      });
    }
    done();
  });
}

type ToResponse = (
  refusal: Refusal,
  locale: Locale,
  requestId: string,
) => Omit<ErrorResponse, 'body'> & { body: object };

/** `toResponse` replaces the envelope where an interface has an error format of its own. */
export function sendError(
  error: unknown,
  reply: FastifyReply,
  log: Log,
  toResponse: ToResponse = errorResponse,
): FastifyReply {
  const { request } = reply;
  const refusal = refusalFrom(error);
  if (refusal.code === 'service_internal_error') log(errorLine(error, request.id));
  requireDeclared(refusal, request, log);
  const { status, headers, body } = toResponse(refusal, localeOf(request), request.id);
  request.outcome = refusal.code;
  request.refusedField = refusal.facts.field ?? null;
  return reply.code(status).headers(headers).header('x-request-id', request.id).type('application/json').send(body);
}

/** A code that the document of the operation does not list is a bug of ours: logged, and answered all the same. */
function requireDeclared(
  { code }: Refusal,
  { id, is404, routeOptions: { config, schema } }: FastifyRequest,
  log: Log,
): void {
  const codes = is404 ? undefined : codesOf(schema, config?.action);
  if (!codes || codes.has(code)) return;
  log(errorLine(new Error(`${schema?.operationId} answered ${code}, which it does not declare`), id));
}

/** Accept-Language, else the account's locale, else English. */
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
  // The caller disconnected while the body was read. The response only reaches the log.
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

const NO_REQUEST = {
  ...{ account_id: null, key_id: null, order_id: null, certificate_id: null, field: null, caller_request_id: null },
} as const;

/** Answers errors that occur before Fastify has a request: only the socket is available. */
export function answerTransportErrors(app: FastifyInstance, newId: NewId, record: RecordRequest): void {
  const pendingResponses = new WeakMap<Duplex, number>();
  app.server.prependListener('request', ({ socket }, response) => {
    pendingResponses.set(socket, (pendingResponses.get(socket) ?? 0) + 1);
    response.once('close', () => pendingResponses.set(socket, (pendingResponses.get(socket) ?? 1) - 1));
  });

  function refuse(socket: Duplex, refusal: TransportRefusal, method: string): void {
    const requestId = newId();
    const { status, headers, body } = errorResponse(refusal, 'en', requestId);
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
    record({ ...line, ...NO_REQUEST });
  }

  app.server.removeAllListeners('clientError');
  app.server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // A response still pending on this connection would follow this one and be matched to the wrong request.
    if (error.code === 'ECONNRESET' || !socket.writable || (pendingResponses.get(socket) ?? 0) > 0) {
      socket.destroy();
      return;
    }
    const { status, ...reason } = PARSER_REFUSALS[error.code ?? ''] ?? NOT_HTTP;
    refuse(socket, new TransportRefusal(status, 'invalid_parameters', reason), '-');
  });
  // By default Node closes a CONNECT without a response.
  app.server.on('connect', (_request, socket) => {
    refuse(
      socket,
      new TransportRefusal(405, 'method_not_allowed', undefined, { allow: 'GET, HEAD, POST, PUT' }),
      'CONNECT',
    );
  });
  // By default Node answers an unknown Expect header with a bare 417. RFC 9110 allows ignoring it.
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));
}
