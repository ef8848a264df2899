// HTTP status and default message of every error code, in both languages. A code without a row does not compile. Messages
// say what is wrong and what to do next; a Refusal's own reason takes precedence.
import type { ErrorCode, Refusal } from '../../domain/errors.ts';
import { inLocale, type Locale, type Localized } from '../../kernel/locale.ts';

export const ERROR_TABLE = {
  invalid_parameters: {
    status: 400,
    en: 'The request is not valid. Compare it with the reference at /docs.',
    zh: '请求参数无效，请对照 /docs 中的接口文档检查。',
  },
  invalid_callback_url: {
    status: 400,
    en: 'The callback address or key is not valid. Use https://host/path with at most 256 characters.',
    zh: '回调地址或密钥无效，请使用不超过 256 个字符的 https://host/path 形式。',
  },
  callback_url_not_https: {
    status: 400,
    en: 'The callback address must use HTTPS. Send one that begins with https://.',
    zh: '回调地址必须使用 HTTPS，请发送以 https:// 开头的地址。',
  },
  callback_not_configured: {
    status: 400,
    en: 'The account has no saved callback settings. Send both url and access_key, or save them first.',
    zh: '账户尚未保存回调配置，请同时发送 url 与 access_key，或先保存配置。',
  },
  invalid_csr: {
    status: 400,
    en: 'The certificate signing request cannot be used. Create a new one and try again.',
    zh: '证书签名请求（CSR）不可用，请重新生成后再试。',
  },
  invalid_domain: {
    status: 400,
    en: 'A domain name is not valid. Send names as lower-case A-labels.',
    zh: '域名无效，请使用小写 A-label 形式。',
  },
  invalid_sans: {
    status: 400,
    en: 'The product does not allow this change of names. GET /openapi/v3/products says in names_may_change what it allows.',
    zh: '该产品不允许这样变更域名，允许的变更见 GET /openapi/v3/products 的 names_may_change。',
  },
  invalid_dcv_method: {
    status: 400,
    en: 'The product does not offer this domain validation method. GET /openapi/v3/products lists those it offers in dcv_methods.',
    zh: '该产品不支持此域名验证方式，支持的方式见 GET /openapi/v3/products 的 dcv_methods。',
  },
  unauthenticated_request: {
    status: 401,
    en: 'Authentication failed. Send a valid pair of X-CC-Key-ID and X-CC-Auth-Key headers.',
    zh: '身份验证失败，请发送有效的 X-CC-Key-ID 与 X-CC-Auth-Key 请求头。',
  },
  permission_denied: {
    status: 403,
    en: 'This credential may not do that. Use a standard API key of the account.',
    zh: '该凭证无权执行此操作，请使用该账户的标准 API 密钥。',
  },
  api_key_disabled: {
    status: 403,
    en: 'This API key is disabled or has expired. Use another key of the account, or ask the operator for one.',
    zh: '该 API 密钥已停用或已过期，请使用账户的其他密钥，或向运营方申请新密钥。',
  },
  account_suspended: {
    status: 403,
    en: 'The operator has suspended this account. Its certificates stay valid; ask the operator to resume the account.',
    zh: '该账户已被运营方暂停，已签发的证书仍然有效，请联系运营方恢复账户。',
  },
  quota_exceeded: {
    status: 403,
    en: 'The account has used up a quota: details say which, and GET /openapi/v3/account shows all. Ask the operator to raise it.',
    zh: '该账户的配额已用尽，详见 details，全部配额见 GET /openapi/v3/account。如需提高请联系运营方。',
  },
  sign_key_pin_wrong: {
    status: 403,
    en: 'The access code is wrong. Send the right one; several wrong ones in a row lock the key, longer each time.',
    zh: '访问控制码错误，请发送正确的访问控制码。连续多次输错会锁定该密钥，且锁定时间逐次延长。',
  },
  route_not_found: {
    status: 404,
    en: 'There is no such operation. The reference at /docs lists all of them.',
    zh: '没有这个接口，全部接口见 /docs。',
  },
  order_not_found: {
    status: 404,
    en: 'The account has no such order. GET /openapi/v3/orders lists them.',
    zh: '该账户下没有此订单，可通过 GET /openapi/v3/orders 查看。',
  },
  product_not_found: {
    status: 404,
    en: 'There is no such product. GET /openapi/v3/products lists them.',
    zh: '没有此产品，可通过 GET /openapi/v3/products 查看。',
  },
  cert_not_found: {
    status: 404,
    en: 'The account has no such certificate. GET /openapi/v3/certs lists them.',
    zh: '该账户下没有此证书，可通过 GET /openapi/v3/certs 查看。',
  },
  account_not_found: {
    status: 404,
    en: 'There is no such account. "reseal account list" shows all of them.',
    zh: '没有此账户，可用 "reseal account list" 查看全部账户。',
  },
  key_not_found: {
    status: 404,
    en: 'There is no such key. "reseal key list ACCOUNT" shows the keys of an account.',
    zh: '没有此密钥，可用 "reseal key list ACCOUNT" 查看账户的密钥。',
  },
  cloud_key_not_found: {
    status: 404,
    en: 'The account has no such cloud-held key, or it was destroyed. GET /openapi/v3/cloud-keys lists them.',
    zh: '该账户下没有此云端密钥，或其已被销毁，可通过 GET /openapi/v3/cloud-keys 查看。',
  },
  delivery_not_found: {
    status: 404,
    en: 'The account has no such delivery. GET /openapi/v3/account/callback/deliveries lists them.',
    zh: '该账户下没有此回调投递记录，可通过 GET /openapi/v3/account/callback/deliveries 查看。',
  },
  session_not_found: {
    status: 404,
    en: 'There is no such session of yours. It may have ended; GET /console/api/sessions lists those that live.',
    zh: '没有此会话，可能已结束；可通过 GET /console/api/sessions 查看有效会话。',
  },
  operator_not_found: {
    status: 404,
    en: 'There is no such operator. "reseal operator list" shows all of them.',
    zh: '没有此操作员，可用 "reseal operator list" 查看全部操作员。',
  },
  method_not_allowed: {
    status: 405,
    en: 'This path does not take that method. The Allow header lists those it takes.',
    zh: '该路径不支持此方法，支持的方法见 Allow 响应头。',
  },
  remove_domain_not_confirmed: {
    status: 409,
    en: 'The reissue removes a domain, and certificates that carry it will be revoked. Send i_know_remove_domain_will_revoke_before_cert: true to agree.',
    zh: '本次重签会移除域名，包含该域名的证书将被吊销。如同意，请发送 i_know_remove_domain_will_revoke_before_cert: true。',
  },
  revoke_last_cert_not_confirmed: {
    status: 409,
    en: 'The product revokes the previous certificate on reissue. Send i_know_will_revoke_last_cert: true to agree.',
    zh: '该产品重签时会吊销上一张证书。如同意，请发送 i_know_will_revoke_last_cert: true。',
  },
  reissue_in_progress: {
    status: 409,
    en: 'A reissue of this order is already pending. Wait for it, or cancel it first.',
    zh: '该订单已有重签正在进行，请等待其完成或先取消。',
  },
  order_state_conflict: {
    status: 409,
    en: 'The order is not in a state that allows this. GET /openapi/v3/orders/{id} shows its status.',
    zh: '订单当前状态不允许此操作，其状态见 GET /openapi/v3/orders/{id}。',
  },
  cancel_not_allowed: {
    status: 409,
    en: 'The order cannot be canceled: nothing of it is pending. POST /openapi/v3/certs/{id}/revoke revokes a certificate that was issued.',
    zh: '该订单没有待处理的申请，不能取消。如需吊销已签发的证书，请使用 POST /openapi/v3/certs/{id}/revoke。',
  },
  revocation_state_conflict: {
    status: 409,
    en: 'The certificate or its revocation is not in a state that allows this. GET /openapi/v3/orders/{id} shows revocations.',
    zh: '证书或其吊销的当前状态不允许此操作，吊销情况见 GET /openapi/v3/orders/{id}。',
  },
  duplicate_alternative_order_id: {
    status: 409,
    en: 'The account already has an order with this alternative_order_id. Send another, or use that order: details name it.',
    zh: '该账户下已存在使用此 alternative_order_id 的订单，请更换，或使用 details 中的订单。',
  },
  callback_paused: {
    status: 409,
    en: 'The callback settings hold this back: callbacks are paused, or the action is not enabled. Change them first.',
    zh: '回调配置当前不允许发送：回调已暂停，或该动作未启用，请先修改配置。',
  },
  callback_send_error: {
    status: 422,
    en: 'The callback could not be sent: network, DNS, TLS or time-out. See details.',
    zh: '回调发送失败（网络、DNS、TLS 或超时），详见 details。',
  },
  callback_response_not_200: {
    status: 422,
    en: 'The callback address answered with a status other than 200. Let it answer 200; details say what it answered.',
    zh: '回调地址返回的状态码不是 200，请使其返回 200，实际响应见 details。',
  },
  callback_private_domain: {
    status: 422,
    en: 'The callback domain resolves to a private address. Use an address on the public internet.',
    zh: '回调域名解析到内网地址，请使用公网地址。',
  },
  lint_refused: {
    status: 422,
    en: 'A linter of the operator refused the certificate, and nothing was signed. details.findings has its reasons; change the request, or ask the operator.',
    zh: '运营方的检查程序拒绝了该证书，未签发任何证书。原因见 details.findings；请修改请求，或联系运营方。',
  },
  idempotency_key_reused: {
    status: 422,
    en: 'This Idempotency-Key was used with another request. Use a new key for a new request.',
    zh: '此 Idempotency-Key 已用于其他请求，新请求请使用新的键。',
  },
  request_too_fast: {
    status: 429,
    en: 'Too many requests. Wait a little, over HTTP for as long as Retry-After says, and try again.',
    zh: '请求过于频繁，请在 Retry-After 响应头给出的时间后重试。',
  },
  sign_key_locked: {
    status: 429,
    en: 'Wrong access codes have locked this key, and the right one is refused too. Try again after the time in the Retry-After header.',
    zh: '该密钥因访问控制码多次输错而被锁定，此时正确的访问控制码也会被拒绝，请在 Retry-After 响应头给出的时间后重试。',
  },
  service_internal_error: {
    status: 500,
    en: 'Something went wrong on our side. Quote the request_id when you report it.',
    zh: '服务内部错误，反馈时请附上 request_id。',
  },
  service_busy: {
    status: 503,
    en: 'The service cannot answer for this right now. Try again shortly; if you asked for a change, look first whether it was made.',
    zh: '服务暂时无法处理请求，请稍后重试；如请求的是变更操作，请先确认该变更是否已生效。',
  },
} as const satisfies Record<ErrorCode, { status: number } & Localized>;

export const messageOf = ({ code, facts }: Refusal, locale: Locale): string =>
  inLocale(facts.reason ?? ERROR_TABLE[code], locale);
