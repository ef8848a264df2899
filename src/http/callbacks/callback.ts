// GET, PUT and DELETE /openapi/v3/account/callback, and rotating the signing secret. Extensions of the specification. No
// response contains the access key; the signing secret is returned once, when it is created.
import type { FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Actor } from '../../domain/access/credential.ts';
import { ACTION_IDS, type CallbackSettings } from '../../domain/callbacks/callback.ts';
import { requireUnmanaged } from '../../domain/callbacks/callback-requests.ts';
import type { Secret } from '../../domain/secret.ts';
import type { ConfigureCallback } from '../../usecases/callbacks/configure-callback.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, list, nullable, text, word } from '../front/values.ts';
import { AccessKey, CALLBACK_TARGET_ERRORS, CallbackUrl } from './callback-test-operation.ts';

export const ActionWord = word('CallbackAction', ACTION_IDS);

const Settings = Type.Object(
  {
    url: Type.Optional({
      ...CallbackUrl,
      description: 'Together with access_key; both left out, the saved ones are kept.',
    }),
    access_key: Type.Optional(AccessKey),
    disabled: Type.Optional(Type.Boolean({ description: 'Pauses business callbacks. Left out, they are not paused.' })),
    enabled_actions: Type.Optional(
      Type.Array(text(ActionWord), {
        description: 'Left out, every action is called back but `order:expiring`, which has to be listed.',
      }),
    ),
  },
  { title: 'CallbackSettingsRequest' },
);

const SettingsView = Type.Object(
  {
    url: Type.String(),
    disabled: Type.Boolean(),
    enabled_actions: Type.Optional(list(ActionWord)),
    updated_at: DateTime,
    signing_secret: Type.Optional(Type.String({ description: 'Shown once, when it is made: keep it.' })),
  },
  { title: 'CallbackSettings' },
);
const View = Type.Object({ callback: nullable(SettingsView) });

const common = {
  tags: ['callbacks'],
  'x-reseal-extension': true,
  response: answers('CallbackSettings', View),
} as const;
const PATH = '/account/callback';
const ADVICE =
  'Every callback carries the access key in X-CC-Callback-Auth: a receiver that logs its headers logs the key. ' +
  'Verify webhook-signature with the signing secret, which is never sent.';

export function callbackOperations(api: Api, callbacks: ConfigureCallback): void {
  const config = { action: 'configure_callback' as const };
  api.get(
    PATH,
    {
      config,
      schema: {
        operationId: 'getCallbackSettings',
        summary: 'Show the callback settings',
        description: 'Neither the access key nor the signing secret is shown.',
        ...common,
        errors: [],
      },
    },
    async (request) => {
      const settings = await callbacks.show(callerOf(request).account.id);
      return success({ callback: settings ? viewOf(settings, null) : null });
    },
  );

  api.put(
    PATH,
    {
      config,
      attachValidation: true,
      schema: {
        operationId: 'saveCallbackSettings',
        summary: 'Save the callback settings',
        description: ADVICE,
        body: Settings,
        ...common,
        errors: CALLBACK_TARGET_ERRORS,
      },
    },
    async (request) => {
      const { settings, signingSecret } = await callbacks.save(changingActorOf(request), request.body);
      return success({ callback: viewOf(settings, signingSecret) });
    },
  );

  api.post(
    `${PATH}/rotate-secret`,
    {
      config,
      schema: {
        operationId: 'rotateCallbackSecret',
        summary: 'Make a new signing secret',
        description:
          'It is shown this once. For a while callbacks carry two signatures: of the new one, and of the old.',
        ...common,
        errors: ['callback_not_configured'],
      },
    },
    async (request) => {
      const { settings, signingSecret } = await callbacks.rotateSecret(changingActorOf(request));
      return success({ callback: viewOf(settings, signingSecret) });
    },
  );

  api.delete(
    PATH,
    {
      config,
      schema: {
        operationId: 'deleteCallbackSettings',
        summary: 'Delete the callback settings',
        description: 'Events are suppressed until there are settings again.',
        ...common,
        errors: [],
      },
    },
    async (request) => {
      await callbacks.remove(changingActorOf(request));
      return success({ callback: null });
    },
  );
}

/** The settings of a managed-PKI account are changed on the command line only. */
function changingActorOf(request: FastifyRequest): Actor {
  requireUnmanaged(callerOf(request).account.kind);
  return actorOf(request);
}

const viewOf = (settings: CallbackSettings, signingSecret: Secret | null): Type.Static<typeof SettingsView> => ({
  url: settings.url,
  disabled: settings.isDisabled,
  ...(settings.enabledActions ? { enabled_actions: settings.enabledActions } : {}),
  updated_at: new Date(settings.updatedAt).toISOString(),
  ...(signingSecret ? { signing_secret: signingSecret.reveal() } : {}),
});
