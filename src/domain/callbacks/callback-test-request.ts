// What a caller says about callbacks, read strictly and in the order that is contract (callback-test 10): is it an
// object, may this account say it, types and emptiness, lengths and form, scheme. The same rules for a test and for
// saving, so that what passed the one is never refused by the other.
import type { AccountKind } from '../access/account.ts';
import type { OutboundUrl } from '../egress/outbound.ts';
import { callbackUrl } from '../egress/url.ts';
import { invalid, Refusal } from '../errors.ts';
import { Secret } from '../secret.ts';
import {
  CALLBACK_ACTIONS,
  type CallbackAction,
  isCallbackAction,
  requireHeaderValue,
  requireShortKey,
} from './callback.ts';

/** Left out, a value is not wished for; whether it is completed from the saved ones depends on the operation. */
export interface CallbackTestRequest {
  readonly url: { readonly text: string; readonly parsed: OutboundUrl } | undefined;
  readonly accessKey: Secret | undefined;
}

export interface SettingsRequest extends CallbackTestRequest {
  readonly isDisabled: boolean;
  readonly enabledActions: readonly CallbackAction[] | null;
}

type Fields = Readonly<Record<string, unknown>>;

export function callbackTestRequest(body: unknown, accountKind: AccountKind): CallbackTestRequest {
  const fields = body === undefined ? {} : objectOf(body);
  // As soon as either is there, whatever it is: the answer must not depend on values.
  if ('url' in fields || 'access_key' in fields) requireUnmanaged(accountKind);
  return wishOf(fields);
}

export function settingsRequest(body: unknown): SettingsRequest {
  const fields = objectOf(body);
  const { disabled = false, enabled_actions: actions } = fields;
  if (typeof disabled !== 'boolean') throw wrongType('disabled', 'true or false', 'true 或 false');
  const enabledActions = actions === undefined ? null : actionsOf(actions);
  const wish = wishOf(fields);
  if ((wish.url === undefined) !== (wish.accessKey === undefined)) {
    const field = wish.url === undefined ? 'url' : 'access_key';
    throw invalid(
      field,
      'url and access_key are saved together: send both, or neither to keep the saved ones.',
      'url 与 access_key 须同时保存：请同时发送，或都不发送以保留已保存的值。',
    );
  }
  return { ...wish, isDisabled: disabled, enabledActions };
}

/** Otherwise saving would get around the rule that these accounts may not test temporary values. */
export function requireUnmanaged(kind: AccountKind): void {
  if (kind !== 'managed_pki') return;
  throw new Refusal('permission_denied', {
    reason: {
      en: 'The callback settings of a managed-PKI account are its operator’s: test them with an empty body.',
      zh: '托管 PKI 账户的回调配置由运营方管理，请使用空请求体进行测试。',
    },
  });
}

function objectOf(body: unknown): Fields {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) {
    // Only what was sent: a name that every object inherits is not a field.
    return Object.assign(Object.create(null), body);
  }
  throw new Refusal('invalid_parameters', {
    reason: { en: 'The body must be a JSON object.', zh: '请求体必须是 JSON 对象。' },
  });
}

function wishOf(fields: Fields): CallbackTestRequest {
  const url = textOf(fields, 'url');
  const accessKey = textOf(fields, 'access_key');
  if (accessKey !== undefined) requireHeaderValue(accessKey, 'access_key');
  if (accessKey !== undefined) requireShortKey(accessKey, 'access_key');
  return {
    url: url === undefined ? undefined : { text: url, parsed: callbackUrl(url) },
    accessKey: accessKey === undefined ? undefined : new Secret(accessKey),
  };
}

function textOf(fields: Fields, field: string): string | undefined {
  const value = fields[field];
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw wrongType(field, 'a string', '字符串');
  if (value.trim() !== '') return value;
  throw invalid(field, `${field} is empty. Send a value, or leave it out.`, `${field} 为空，请填写，或不发送该字段。`);
}

function actionsOf(value: unknown): CallbackAction[] {
  const known = Object.keys(CALLBACK_ACTIONS).join(', ');
  if (!Array.isArray(value)) throw wrongType('enabled_actions', 'a list of actions', '动作列表');
  const unknown = value.findIndex((one) => typeof one !== 'string' || !isCallbackAction(one));
  if (unknown >= 0) throw wrongType(`enabled_actions.${unknown}`, `one of ${known}`, `以下之一：${known}`);
  return [...new Set(value as CallbackAction[])];
}

const wrongType = (field: string, en: string, zh: string): Refusal =>
  invalid(field, `${field} must be ${en}.`, `${field} 须为${zh}。`);
