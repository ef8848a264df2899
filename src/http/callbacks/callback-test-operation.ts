// PUT /openapi/v3/account/callback/test: sends one real callback. The domain validates the body, not the schema: the
// specification has codes of its own for invalid values (contract limit schema).
import Type from 'typebox';
import { MAX_ACCESS_KEY } from '../../domain/callbacks/callback.ts';
import { reportView } from '../../domain/callbacks/report.ts';
import { FAILURE_REASONS, STAGES, type Stage } from '../../domain/egress/outbound.ts';
import { MAX_CALLBACK_URL } from '../../domain/egress/url.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import type { SendTestCallback } from '../../usecases/callbacks/send-test-callback.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { answers, success } from '../front/reply.ts';
import { nullable, word } from '../front/values.ts';

export const CallbackUrl = Type.String({
  minLength: 1,
  maxLength: MAX_CALLBACK_URL,
  format: 'uri',
  pattern: '^[Hh][Tt][Tt][Pp][Ss]://',
  examples: ['https://hooks.example.com/certificates'],
});
export const AccessKey = Type.String({
  minLength: 1,
  maxLength: MAX_ACCESS_KEY,
  pattern: '^[!-~]([ -~]*[!-~])?$',
  description: 'Travels in X-CC-Callback-Auth: printable ASCII, without a blank at either end.',
});

const Body = Type.Object(
  {
    url: Type.Optional({
      ...CallbackUrl,
      description: 'Used for this test only. Without access_key, the saved access key is sent to this address.',
    }),
    access_key: Type.Optional(AccessKey),
  },
  { title: 'CallbackTestRequest' },
);

const Milliseconds = Type.Optional(Type.Integer());
const PHASES = {
  resolve: Milliseconds,
  connect: Milliseconds,
  tls: Milliseconds,
  request: Milliseconds,
  response: Milliseconds,
} satisfies Record<Stage, Type.TSchema>;

export const Excerpt = Type.String({ description: 'At most 2 KiB of the answer, with the access key masked.' });
export const CallbackReportView = Type.Object(
  {
    webhook_id: Type.String(),
    stage: word('CallbackStage', STAGES, 'How far the test came.'),
    reason: nullable(word('CallbackFailure', FAILURE_REASONS)),
    http_status: nullable(Type.Integer()),
    phases_ms: Type.Object(PHASES, { description: 'Milliseconds spent in each stage that was entered.' }),
    tls_version: nullable(Type.String()),
    certificate_expires_in_days: nullable(Type.Integer()),
    excerpt: nullable(Excerpt),
  },
  { title: 'CallbackReport' },
);
const Answer = Type.Object({ callback: CallbackReportView });

/** Codes of every request that names a receiver. */
export const CALLBACK_TARGET_ERRORS = [
  'invalid_callback_url',
  'callback_url_not_https',
  'callback_not_configured',
  'callback_private_domain',
] as const satisfies readonly ErrorCode[];

export function callbackTestOperation(api: Api, sendTestCallback: SendTestCallback): void {
  api.put(
    '/account/callback/test',
    {
      config: { action: 'test_callback' },
      // Schema is documentation only; the domain returns more specific codes.
      attachValidation: true,
      schema: {
        operationId: 'testCallback',
        summary: 'Test the callback settings with a real, simulated callback',
        description:
          'Without a body the saved settings are tested. A temporary url or access_key is completed from the saved ones: ' +
          'a temporary url alone is sent the saved access key. Nothing is saved. After a failure, `details` has the same object.',
        tags: ['callbacks'],
        'x-optional-body': true,
        body: Body,
        errors: [...CALLBACK_TARGET_ERRORS, 'callback_send_error', 'callback_response_not_200', 'request_too_fast'],
        response: answers('CallbackTest', Answer),
      },
    },
    async (request, reply) => {
      const disconnected = new AbortController();
      reply.raw.once('close', () => disconnected.abort());
      const { account } = callerOf(request);
      const call = { account, by: actorOf(request), body: request.body, signal: disconnected.signal };
      return success({ callback: reportView(await sendTestCallback(call)) });
    },
  );
}
