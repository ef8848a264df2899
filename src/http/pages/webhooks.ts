// The events of the OpenAPI document: what the service sends to an account's callback address, with the headers that
// authenticate it.
import Type from 'typebox';
import { ACTION_IDS, CALLBACK_ACTIONS, type CallbackAction } from '../../domain/callbacks/callback.ts';
import { OrderStatusWord } from '../issuance/order-view.ts';
import type { Components } from './components.ts';
import type { EventExample } from './examples.ts';

/** Not `callbacks`: generators make a class per tag, and what is sent is not what is called. */
export const EVENTS = { name: 'events', description: 'What the service sends to the callback address of an account.' };

const TEXT = { type: 'string' } as const;

const HEADERS = {
  'webhook-id': {
    ...TEXT,
    description: 'The id of the event, the same in every attempt: what was handled before can be told by it.',
  },
  'webhook-timestamp': { ...TEXT, pattern: '^\\d+$', description: 'When this attempt was sent, in Unix seconds.' },
  'webhook-signature': {
    ...TEXT,
    description:
      '`v1,` and the base64 of the HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}` under the signing secret, whose ' +
      'base64 follows `whsec_`. During a rotation there are several, separated by blanks; one that verifies is enough.',
  },
};

/** `order:issued` → `onOrderIssued`. */
const operationIdOf = (action: CallbackAction): string =>
  `on${action.replace(/(^|:|_)(.)/g, (_, _start, letter: string) => letter.toUpperCase())}`;

const eventSchema = (action: CallbackAction) =>
  Type.Object(
    {
      action_type: Type.String({ enum: [CALLBACK_ACTIONS[action].type] }),
      action_id: Type.String({ enum: [action] }),
      order_id: Type.String(),
      order_status: OrderStatusWord,
      cert_id: Type.String(),
      message: Type.String({ description: 'For people, in the language of the account. Never decide by it.' }),
    },
    { title: `${operationIdOf(action).slice(2)}Event` },
  );

export const CALLBACK_SECURITY = {
  callbackAccessKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-CC-Callback-Auth',
    description: 'The access key of the callback settings. A receiver compares it, and verifies `webhook-signature`.',
  },
};

export function webhooks({ documented }: Components, examples: Readonly<Record<string, EventExample>>) {
  return Object.fromEntries(
    ACTION_IDS.map((action) => {
      const example = examples[action];
      const parameters = Object.entries(HEADERS).map(([name, { description, ...schema }]) => ({
        ...{ name, in: 'header', required: true, description, schema },
        ...(example && { example: example.headers[name] }),
      }));
      const event = {
        operationId: operationIdOf(action),
        tags: [EVENTS.name],
        summary: CALLBACK_ACTIONS[action].message.en,
        description:
          'Sent until it is answered with 200, at growing intervals; after the last one it can be sent again on request.',
        security: [{ callbackAccessKey: [] }],
        parameters,
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: documented(eventSchema(action)),
              ...(example && { examples: { [operationIdOf(action)]: { value: example.body } } }),
            },
          },
        },
        responses: {
          200: { description: 'Received. The body of the answer is not read further than for reports.' },
          '4XX': { description: 'Not received, like every other status: it is sent again.' },
        },
      };
      return [action, { post: event }];
    }),
  );
}
