// Callback settings of an account, the actions that trigger callbacks, and the body of a callback.

import { inLocale, type Locale, type Localized } from '../../kernel/locale.ts';
import type { OrderStatus } from '../certificate/order.ts';
import { invalid, Refusal } from '../errors.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Secret } from '../secret.ts';

interface ActionFacts {
  readonly type: 'order';
  readonly message: Localized;
  /** Called back only to accounts that list it. */
  readonly isOptIn?: true;
}

/** All actions, with their texts. Only `order:issued` is in the specification; the others are extensions. */
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
  'order:reissue_canceled': {
    type: 'order',
    message: {
      en: 'A reissue of the order has ended without a certificate.',
      zh: '订单的重签已结束，未签发证书。',
    },
  },
  'order:expiring': {
    type: 'order',
    message: {
      en: 'The certificate of the order will expire soon. Reissue it, or place a new order.',
      zh: '订单的证书即将到期，请重签或重新下单。',
    },
    isOptIn: true,
  },
} as const satisfies Record<string, ActionFacts>;
export type CallbackAction = keyof typeof CALLBACK_ACTIONS;

export const isCallbackAction = (text: string): text is CallbackAction => Object.hasOwn(CALLBACK_ACTIONS, text);
export const ACTION_IDS: readonly CallbackAction[] = Object.keys(CALLBACK_ACTIONS).filter(isCallbackAction);

const DEFAULT_ACTIONS = ACTION_IDS.filter((action) => !('isOptIn' in CALLBACK_ACTIONS[action]));

export interface CallbackSettings {
  readonly accountId: AccountId;
  readonly url: string;
  readonly accessKey: Secret;
  /** HMAC key of the signature; never sent. */
  readonly signingSecret: Secret;
  /** Previous secrets, latest first, which also sign until the rotation ends. */
  readonly former: { readonly secrets: readonly Secret[]; readonly until: number } | null;
  readonly isDisabled: boolean;
  /** Null: all but those that are opt-in. */
  readonly enabledActions: readonly CallbackAction[] | null;
  readonly updatedAt: number;
}

export const actionsOf = ({ enabledActions }: Pick<CallbackSettings, 'enabledActions'>): readonly CallbackAction[] =>
  enabledActions ?? DEFAULT_ACTIONS;

/** The request body, with the field names of the specification. */
interface CallbackBody {
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

/** Replaces ids in a test. Real ids have no hyphen, so it can never equal one. */
export const placeholderId = (id: string): string => `test-${id}`;
const TEST_MESSAGE: Localized = {
  en: 'This is a test. The order and the certificate do not exist.',
  zh: '这是一条测试回调，其中的订单和证书并不存在。',
};

export const testBody = (ids: { orderId: OrderId; certificateId: CertificateId }, locale: Locale): CallbackBody => ({
  ...callbackBody('order:issued', { ...ids, orderStatus: 'issued' }, locale),
  message: inLocale(TEST_MESSAGE, locale),
});

export const MAX_ACCESS_KEY = 256;

/** Checked together with types and emptiness: a value that cannot be a header value cannot be sent at all. */
export function requireHeaderValue(accessKey: string, field: string): void {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(accessKey)) return;
  throw invalid(
    field,
    `${field} travels in a header: use printable ASCII characters, without a blank at either end.`,
    `${field} 通过请求头发送，只能使用可打印的 ASCII 字符，且首尾不能有空格。`,
  );
}

/** By specification, a key that is too long has the same code as an invalid URL. */
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
