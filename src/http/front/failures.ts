// Turns every error into an enveloped response: refusals of use cases and errors of Fastify. Anything else is a bug: logged
// in full, answered without detail. listener.ts answers errors that occur before Fastify has a request.
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import { type Locale, preferredLocale } from '../../kernel/locale.ts';
import { errorLine, type Log } from '../../kernel/log.ts';
import { CONSOLE_API, codesOf } from './operation.ts';
import { type ErrorResponse, errorResponse, TransportRefusal } from './reply.ts';
import { validationRefusal } from './schema-validation.ts';

export function answerErrors(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((error, _request, reply) => sendError(error, reply, log));
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
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
  // A format of its own names its type in the headers.
  return reply.code(status).type('application/json').header('x-request-id', request.id).headers(headers).send(body);
}

/** A code that the document of the operation does not list is a bug of ours: logged, and answered all the same. */
function requireDeclared(
  { code }: Refusal,
  { id, is404, routeOptions: { url = '', config, schema } }: FastifyRequest,
  log: Log,
): void {
  const isListed = !is404 && !url.startsWith(CONSOLE_API);
  const codes = isListed ? codesOf(schema, config?.action) : undefined;
  if (!codes || codes.has(code)) return;
  log(errorLine(new Error(`${schema?.operationId} answered ${code}, which it does not declare`), id));
}

/** Accept-Language, else the account's locale, else English. */
export function localeOf(request: FastifyRequest): Locale {
  const account = request.caller?.account ?? request.tenant;
  return preferredLocale(request.headers['accept-language']) ?? account?.locale ?? 'en';
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
