// What an account saves about its callbacks, which actions are called back, and what a callback says. Pure; how it
// travels is not decided here.

import { inLocale, type Locale, type Localized } from '../../kernel/locale.ts';
import type { OrderStatus } from '../certificate/order.ts';
import { invalid, Refusal } from '../errors.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Secret } from '../secret.ts';

interface ActionFacts {
  readonly type: 'order';
  readonly message: Localized;
}

/** Every action there is, with what its callback says. Only the first is specified; the others are ours. */
export const CALLBACK_ACTIONS = {
  'order:issued': {
    type: 'order',
    message: { en: 'The certificate of the order has been issued.', zh: '订单的证书已签发。' },
  },
  'order:revoked': {
    type: 'order',
    message: { en: 'A certificate of the order has been revoked.', zh: '订单的证书已吊销。' },
  },
  'order:rejected': {
    type: 'order',
    message: { en: 'The order has been rejected.', zh: '订单已被拒绝。' },
  },
} as const satisfies Record<string, ActionFacts>;
export type CallbackAction = keyof typeof CALLBACK_ACTIONS;

export const isCallbackAction = (text: string): text is CallbackAction => Object.hasOwn(CALLBACK_ACTIONS, text);

export interface CallbackSettings {
  readonly accountId: AccountId;
  readonly url: string;
  readonly accessKey: Secret;
  /** Signs the body of every callback, and is never sent in one. */
  readonly signingSecret: Secret;
  /** Those before, the latest first, which sign too while a rotation is under way. */
  readonly former: { readonly secrets: readonly Secret[]; readonly until: number } | null;
  readonly isDisabled: boolean;
  /** Null: all of them. */
  readonly enabledActions: readonly CallbackAction[] | null;
  readonly updatedAt: number;
}

/** The body as it travels. The names are the interface's. */
export interface CallbackBody {
  readonly action_type: string;
  readonly action_id: CallbackAction;
  readonly order_id: OrderId;
  readonly order_status: string;
  readonly cert_id: string;
  readonly message: string;
}

export function callbackBody(
  action: CallbackAction,
  about: { readonly orderId: OrderId; readonly orderStatus: OrderStatus; readonly certificateId: CertificateId },
  locale: Locale,
): CallbackBody {
  const { type, message } = CALLBACK_ACTIONS[action];
  return {
    action_type: type,
    action_id: action,
    order_id: about.orderId,
    order_status: about.orderStatus,
    cert_id: about.certificateId,
    message: inLocale(message, locale),
  };
}

/** What a test carries in the place of ids. No id of ours has a hyphen, so these can never be real ones. */
export const placeholder = (id: string): string => `test-${id}`;
const TEST_MESSAGE: Localized = {
  en: 'This is a test. The order and the certificate do not exist.',
  zh: '这是一条测试回调，其中的订单和证书并不存在。',
};

export const testBody = (ids: { orderId: OrderId; certificateId: CertificateId }, locale: Locale): CallbackBody => ({
  ...callbackBody('order:issued', { ...ids, orderStatus: 'issued' }, locale),
  message: inLocale(TEST_MESSAGE, locale),
});

export const MAX_ACCESS_KEY = 256;

/** Asked together with types and emptiness: what cannot be a header value cannot be sent at all. */
export function requireHeaderValue(accessKey: string, field: string): void {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(accessKey)) return;
  throw invalid(
    field,
    `${field} travels in a header: use printable ASCII characters, without a blank at either end.`,
    `${field} 通过请求头发送，只能使用可打印的 ASCII 字符，且首尾不能有空格。`,
  );
}

/** The code is the specification's: the length of the key shares it with the form of the URL. */
export function requireShortKey(accessKey: string, field: string): void {
  if (accessKey.length <= MAX_ACCESS_KEY) return;
  throw new Refusal('invalid_callback_url', {
    field,
    reason: {
      en: `${field} has at most ${MAX_ACCESS_KEY} characters; this one has ${accessKey.length}.`,
      zh: `${field} 最多 ${MAX_ACCESS_KEY} 个字符，当前为 ${accessKey.length} 个。`,
    },
  });
}
