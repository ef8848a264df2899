// PUT /openapi/v3/account/callback/test: sends one real callback. The domain validates the body, not the schema: the
// specification has codes of its own for invalid values (contract limit schema).
import Type from 'typebox';
import { MAX_ACCESS_KEY } from '../../domain/callbacks/callback.ts';
import { reportView } from '../../domain/callbacks/report.ts';
import { FAILURE_REASONS, STAGES } from '../../domain/egress/outbound.ts';
import { MAX_CALLBACK_URL } from '../../domain/egress/url.ts';
import type { SendTestCallback } from '../../usecases/callbacks/send-test-callback.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { answers, success } from '../front/reply.ts';
import { nullable } from '../front/values.ts';

export const CallbackUrl = Type.String({
  maxLength: MAX_CALLBACK_URL,
  format: 'uri',
  pattern: '^https://',
  examples: ['https://hooks.example.com/certificates'],
});
export const AccessKey = Type.String({
  maxLength: MAX_ACCESS_KEY,
  description: 'Travels in X-CC-Callback-Auth: printable ASCII, without a blank at either end.',
});

const Body = Type.Object({
  url: Type.Optional({
    ...CallbackUrl,
    description: 'Used for this test only. Without access_key, the saved access key is sent to this address.',
  }),
  access_key: Type.Optional(AccessKey),
});

const Answer = Type.Object({
  callback: Type.Object({
    webhook_id: Type.String(),
    stage: Type.Enum([...STAGES], { description: 'How far the test came.' }),
    reason: nullable(Type.Enum([...FAILURE_REASONS])),
    http_status: nullable(Type.Integer()),
    phases_ms: Type.Object(Object.fromEntries(STAGES.map((stage) => [stage, Type.Optional(Type.Integer())]))),
    tls_version: nullable(Type.String()),
    certificate_expires_in_days: nullable(Type.Integer()),
    excerpt: nullable(Type.String({ description: 'At most 2 KiB of the answer, with the access key masked.' })),
  }),
});

export function callbackTestOperation(api: Api, sendTestCallback: SendTestCallback): void {
  api.put(
    '/account/callback/test',
    {
      config: { action: 'test_callback' },
      // Schema is documentation only; the domain returns more specific codes.
      attachValidation: true,
      schema: {
        summary: 'Test the callback settings with a real, simulated callback',
        description:
          'Without a body the saved settings are tested. A temporary url or access_key is completed from the saved ones: ' +
          'a temporary url alone is sent the saved access key. Nothing is saved. After a failure, `details` has the same object.',
        tags: ['callback'],
        'x-optional-body': true,
        body: Body,
        response: answers(Answer),
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
