// Callbacks in words: actions, states, why one was not sent, why an attempt failed and what its receiver can do.
import type { View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, type Tone } from '../../shell/parts.ts';
import type { Schema } from '../../shell/wire.ts';

type Action = Schema<'CallbackAction'>;
type State = Schema<'DeliveryState'>;
type Reason = Schema<'DeliveryReason'>;
type Failure = Schema<'AttemptFailure'>;

const ACTIONS: Readonly<Record<Action, true>> = {
  'order:issued': true,
  'order:revoked': true,
  'order:rejected': true,
  'order:reissue_canceled': true,
  'order:expiring': true,
};
export const ACTION_IDS = Object.keys(ACTIONS) as Action[];

export const actionWord = texts<Action>({
  en: {
    'order:issued': 'A certificate was issued',
    'order:revoked': 'A certificate was revoked',
    'order:rejected': 'An order was given up',
    'order:reissue_canceled': 'A reissue ended without a certificate',
    'order:expiring': 'A certificate ends soon',
  },
  zh: {
    'order:issued': '证书已签发',
    'order:revoked': '证书已吊销',
    'order:rejected': '订单被拒绝',
    'order:reissue_canceled': '重签结束，未签发证书',
    'order:expiring': '证书即将到期',
  },
});

const TONES: Readonly<Record<State, Tone>> = {
  pending: 'waiting',
  delivered: 'good',
  failed: 'bad',
  suppressed: 'over',
};
export const STATES = Object.keys(TONES) as State[];

export const stateWord = texts<State>({
  en: { pending: 'On its way', delivered: 'Received', failed: 'Given up', suppressed: 'Not sent' },
  zh: { pending: '投递中', delivered: '已送达', failed: '已放弃', suppressed: '未发送' },
});

export const deliveryBadge = (state: State): View => badge(TONES[state], stateWord(state));

export const whyWord = texts<Reason>({
  en: {
    not_configured: 'There were no settings. Save an address, then send it again.',
    disabled: 'Callbacks were paused. Resume them, then send it again.',
    action_not_enabled: 'The settings do not ask for this action. Enable it, then send it again.',
    before_delivery: 'It was written before callbacks were delivered. Send it again if you need it.',
    attempts_used_up: 'Every attempt failed. Mend the receiver, test it, then send it again.',
    receiver_down: 'The receiver was down for the whole time. Mend it, test it, then send it again.',
  },
  zh: {
    not_configured: '当时没有回调设置。请保存回调地址后重新发送。',
    disabled: '当时回调已暂停。请恢复回调后重新发送。',
    action_not_enabled: '设置未启用该事件。请启用后重新发送。',
    before_delivery: '产生于启用投递之前。如需要请重新发送。',
    attempts_used_up: '所有尝试均失败。请修复接收端并测试，然后重新发送。',
    receiver_down: '接收端一直不可用。请修复并测试，然后重新发送。',
  },
});

export const failureWord = texts<Failure>({
  en: {
    name_not_found: 'the host has no address in DNS',
    dns_failure: 'DNS could not answer for the host',
    dns_timeout: 'DNS did not answer in time',
    connection_refused: 'the receiver refused the connection',
    connection_failed: 'no connection could be made',
    connect_timeout: 'the connection was not accepted in time',
    tls_failed: 'no TLS connection could be agreed',
    tls_timeout: 'the TLS handshake was not finished in time',
    certificate_untrusted: 'the certificate of the receiver is not trusted',
    certificate_expired: 'the certificate of the receiver has expired',
    certificate_not_yet_valid: 'the certificate of the receiver is not valid yet',
    certificate_wrong_host: 'the certificate of the receiver is for another host',
    connection_closed: 'the receiver closed the connection before it answered',
    response_timeout: 'the receiver did not answer in time',
    response_invalid: 'the answer was not HTTP',
    canceled: 'the attempt was broken off',
    private_address: 'the host leads to a private address',
  },
  zh: {
    name_not_found: '主机名在 DNS 中没有地址',
    dns_failure: 'DNS 查询失败',
    dns_timeout: 'DNS 查询超时',
    connection_refused: '接收端拒绝连接',
    connection_failed: '无法建立连接',
    connect_timeout: '连接超时',
    tls_failed: 'TLS 协商失败',
    tls_timeout: 'TLS 握手超时',
    certificate_untrusted: '接收端证书不受信任',
    certificate_expired: '接收端证书已过期',
    certificate_not_yet_valid: '接收端证书尚未生效',
    certificate_wrong_host: '接收端证书与主机名不符',
    connection_closed: '接收端在响应前关闭了连接',
    response_timeout: '接收端未及时响应',
    response_invalid: '响应不是有效的 HTTP',
    canceled: '尝试被中断',
    private_address: '主机名指向内网地址',
  },
});
