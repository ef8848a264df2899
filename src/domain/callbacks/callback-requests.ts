// Parses request bodies of callback tests and settings. The order of checks is contract (callback-test 10): object,
// permission, types and emptiness, lengths and form, scheme. Both share the rules, so that tested values can be saved.
import type { AccountKind } from '../access/account.ts';
import type { OutboundUrl } from '../egress/outbound.ts';
import { callbackUrl } from '../egress/url.ts';
import { invalid, Refusal } from '../errors.ts';
import { Secret } from '../secret.ts';
import { ACTION_IDS, type CallbackAction, isCallbackAction, requireHeaderValue, requireShortKey } from './callback.ts';

/** Undefined: not sent. */
export interface CallbackTestRequest {
  readonly url: { readonly text: string; readonly parsed: OutboundUrl } | undefined;
  readonly accessKey: Secret | undefined;
}

export interface CallbackSettingsRequest extends CallbackTestRequest {
  readonly isDisabled: boolean;
  readonly enabledActions: readonly CallbackAction[] | null;
}

type Fields = Readonly<Record<string, unknown>>;

export function parseTestRequest(body: unknown, accountKind: AccountKind): CallbackTestRequest {
  const fields = body === undefined ? {} : parseObject(body);
  // Decided by presence, before the values are read: the answer must not depend on them.
  if ('url' in fields || 'access_key' in fields) requireUnmanaged(accountKind);
  return parseTarget(fields);
}

export function parseSettingsRequest(body: unknown): CallbackSettingsRequest {
  const fields = parseObject(body);
  const { disabled = false, enabled_actions: actions } = fields;
  if (typeof disabled !== 'boolean') throw wrongType('disabled', 'true or false', 'true 或 false');
  const enabledActions = actions === undefined ? null : parseActions(actions);
  const target = parseTarget(fields);
  if ((target.url === undefined) !== (target.accessKey === undefined)) {
    const field = target.url === undefined ? 'url' : 'access_key';
    throw invalid(
      field,
      'url and access_key are saved together: send both, or neither to keep the saved ones.',
      'url 与 access_key 须同时保存：请同时发送，或都不发送以保留已保存的值。',
    );
  }
  return { ...target, isDisabled: disabled, enabledActions };
}

/** Managed-PKI accounts may not test temporary values; saving them would circumvent that. */
export function requireUnmanaged(kind: AccountKind): void {
  if (kind !== 'managed_pki') return;
  throw new Refusal('permission_denied', {
    reason: {
      en: 'The callback settings of a managed-PKI account are its operator’s: test them with an empty body.',
      zh: '托管 PKI 账户的回调配置由运营方管理，请使用空请求体进行测试。',
    },
  });
}

function parseObject(body: unknown): Fields {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) {
    // Without a prototype, so that inherited names are not fields.
    return Object.assign(Object.create(null), body);
  }
  throw new Refusal('invalid_parameters', {
    reason: { en: 'The body must be a JSON object.', zh: '请求体必须是 JSON 对象。' },
  });
}

function parseTarget(fields: Fields): CallbackTestRequest {
  const url = parseText(fields, 'url');
  const accessKey = parseText(fields, 'access_key');
  if (accessKey !== undefined) requireHeaderValue(accessKey, 'access_key');
  if (accessKey !== undefined) requireShortKey(accessKey, 'access_key');
  return {
    url: url === undefined ? undefined : { text: url, parsed: callbackUrl(url) },
    accessKey: accessKey === undefined ? undefined : new Secret(accessKey),
  };
}

function parseText(fields: Fields, field: string): string | undefined {
  const value = fields[field];
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw wrongType(field, 'a string', '字符串');
  if (value.trim() !== '') return value;
  throw invalid(field, `${field} is empty. Send a value, or leave it out.`, `${field} 为空，请填写，或不发送该字段。`);
}

function parseActions(value: unknown): CallbackAction[] {
  const known = ACTION_IDS.join(', ');
  if (!Array.isArray(value)) throw wrongType('enabled_actions', 'a list of actions', '动作列表');
  const actions = value.map((one: unknown, index) => {
    if (typeof one === 'string' && isCallbackAction(one)) return one;
    throw wrongType(`enabled_actions.${index}`, `one of ${known}`, `以下之一：${known}`);
  });
  return [...new Set(actions)];
}

const wrongType = (field: string, en: string, zh: string): Refusal =>
  invalid(field, `${field} must be ${en}.`, `${field} 须为${zh}。`);
