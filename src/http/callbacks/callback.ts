// GET, PUT and DELETE /openapi/v3/account/callback, and rotating the signing secret. Extensions of the specification. No
// response contains the access key; the signing secret is returned once, when it is created.
import type { FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Actor } from '../../domain/access/credential.ts';
import { ACTION_IDS, type CallbackSettings } from '../../domain/callbacks/callback.ts';
import { requireUnmanaged } from '../../domain/callbacks/callback-requests.ts';
import type { HeldBackEvents } from '../../domain/callbacks/ports.ts';
import { inLocale, type Locale, type Localized } from '../../kernel/locale.ts';
import type { ConfigureCallback, SavedCallback } from '../../usecases/callbacks/configure-callback.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { localeOf } from '../front/failures.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, list, moment, nullable, text, word } from '../front/values.ts';
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

const Suppressed = Type.Object(
  {
    count: Type.Integer({ description: 'Counted up to 1000.' }),
    has_more: Type.Boolean({ description: 'There are more than were counted.' }),
    since: nullable({ ...DateTime, description: 'When the oldest happened; `since` of resending them.' }),
    how_to_resend: nullable(Type.String({ description: 'For people, in English or Chinese. Null without any.' })),
  },
  {
    title: 'SuppressedEvents',
    description:
      'Events that were not sent because callbacks were disabled. Enable callbacks, then send them again with resendDeliveries, ' +
      '`state` `suppressed` and this `since`.',
  },
);

const SettingsView = Type.Object(
  {
    url: Type.String(),
    disabled: Type.Boolean(),
    enabled_actions: Type.Optional(list(ActionWord)),
    updated_at: DateTime,
    suppressed: Suppressed,
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
  const answerOf = async (request: FastifyRequest, saved: SavedCallback) =>
    viewOf(saved, await callbacks.heldBack(saved.settings.accountId), localeOf(request));

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
      return success({ callback: settings ? await answerOf(request, { settings, signingSecret: null }) : null });
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
      const saved = await callbacks.save(changingActorOf(request), request.body);
      return success({ callback: await answerOf(request, saved) });
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
      const saved = await callbacks.rotateSecret(changingActorOf(request));
      return success({ callback: await answerOf(request, saved) });
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

const howToResend = ({ isDisabled }: CallbackSettings, since: string): Localized => {
  const call = `POST /openapi/v3${PATH}/deliveries/resend {"state":"suppressed","since":"${since}"}`;
  return {
    en: `${isDisabled ? 'Save the settings with disabled false, then send' : 'Send'} them again: ${call}`,
    zh: `${isDisabled ? '请先将 disabled 设为 false 并保存，再重新发送' : '重新发送'}：${call}`,
  };
};

function suppressedView(settings: CallbackSettings, { count, hasMore, since: at }: HeldBackEvents, locale: Locale) {
  const since = moment(at);
  return {
    ...{ count, has_more: hasMore, since },
    how_to_resend: since === null ? null : inLocale(howToResend(settings, since), locale),
  };
}

const viewOf = (
  { settings, signingSecret }: SavedCallback,
  heldBack: HeldBackEvents,
  locale: Locale,
): Type.Static<typeof SettingsView> => ({
  url: settings.url,
  disabled: settings.isDisabled,
  ...(settings.enabledActions ? { enabled_actions: settings.enabledActions } : {}),
  updated_at: new Date(settings.updatedAt).toISOString(),
  suppressed: suppressedView(settings, heldBack, locale),
  ...(signingSecret ? { signing_secret: signingSecret.reveal() } : {}),
});
