// The report of a callback test: stage reached, fault, remedy. Everything in it is bounded, and the access key is masked
// wherever the receiver echoes it.
import { DAY_MS } from '../../kernel/durations.ts';
import type { Localized } from '../../kernel/locale.ts';
import type { FailureReason, Outcome, Stage } from '../egress/outbound.ts';
import { Refusal } from '../errors.ts';
import type { Secret } from '../secret.ts';
import { MAX_ACCESS_KEY } from './callback.ts';
import { maskKey } from './key-mask.ts';

export interface CallbackReport {
  readonly webhookId: string;
  readonly stage: Stage;
  readonly reason: FailureReason | null;
  readonly httpStatus: number | null;
  readonly phases: Readonly<Partial<Record<Stage, number>>>;
  readonly tlsVersion: string | null;
  readonly certificateExpiresInDays: number | null;
  readonly excerpt: string | null;
}

/** Fault and remedy, for the receiver's operator. */
const FAILURE_TEXTS: Readonly<Record<FailureReason, Localized>> = {
  name_not_found: {
    en: 'The host of the callback address has no address in DNS. Check its spelling, or publish its record.',
    zh: '回调地址的主机名在 DNS 中没有地址，请检查拼写或添加解析记录。',
  },
  dns_failure: {
    en: 'DNS could not answer for the host of the callback address. Check its name servers.',
    zh: '回调地址主机名的 DNS 查询失败，请检查其域名服务器。',
  },
  dns_timeout: {
    en: 'DNS did not answer in time for the host of the callback address. Check its name servers.',
    zh: '回调地址主机名的 DNS 查询超时，请检查其域名服务器。',
  },
  connection_refused: {
    en: 'The receiver refused the connection. Is it running, and is the port right?',
    zh: '接收端拒绝连接，请确认服务已启动且端口正确。',
  },
  connection_failed: {
    en: 'No connection to the receiver could be made. Check routes and firewalls.',
    zh: '无法连接到接收端，请检查网络与防火墙。',
  },
  connect_timeout: {
    en: 'The receiver did not accept the connection in time. Check routes and firewalls.',
    zh: '连接接收端超时，请检查网络与防火墙。',
  },
  tls_failed: {
    en: 'No TLS connection could be agreed. The receiver must speak TLS 1.2 or newer on this port.',
    zh: 'TLS 协商失败，接收端须在该端口支持 TLS 1.2 或更高版本。',
  },
  tls_timeout: {
    en: 'The receiver did not finish the TLS handshake in time. Does it speak TLS on this port?',
    zh: 'TLS 握手超时，请确认该端口使用 TLS。',
  },
  certificate_untrusted: {
    en: 'The certificate of the receiver is not trusted. Use one of a public authority, and send the whole chain.',
    zh: '接收端证书不受信任，请使用公共 CA 的证书并发送完整证书链。',
  },
  certificate_expired: {
    en: 'The certificate of the receiver has expired. Renew it.',
    zh: '接收端证书已过期，请续期。',
  },
  certificate_not_yet_valid: {
    en: 'The certificate of the receiver is not valid yet. Check it, and the clocks.',
    zh: '接收端证书尚未生效，请检查证书与时钟。',
  },
  certificate_wrong_host: {
    en: 'The certificate of the receiver is for another host than the one in the callback address.',
    zh: '接收端证书与回调地址的主机名不符。',
  },
  connection_closed: {
    en: 'The receiver closed the connection before it had answered. Look into its log.',
    zh: '接收端在响应前关闭了连接，请查看其日志。',
  },
  response_timeout: {
    en: 'The receiver did not answer in time. Answer first, and work afterwards.',
    zh: '接收端未及时响应，请先返回响应再处理业务。',
  },
  response_invalid: {
    en: 'What the receiver answered is not HTTP/1.1. Look into its log.',
    zh: '接收端返回的不是有效的 HTTP/1.1 响应，请查看其日志。',
  },
  canceled: {
    en: 'The test was canceled because its caller left.',
    zh: '调用方已断开，测试已取消。',
  },
};

const MAX_EXCERPT_BYTES = 2_048;
/** The excerpt, and an escaped key that begins at its end. */
const MAX_SCANNED = MAX_EXCERPT_BYTES + 7 * MAX_ACCESS_KEY;

/** Returns the report of a successful test. Throws a Refusal otherwise, which has the report unless the target is private. */
export function reportOf(outcome: Outcome, webhookId: string, accessKey: Secret, now: number): CallbackReport {
  if (outcome.kind === 'private') throw new Refusal('callback_private_domain');
  const { stage, phases, tls } = outcome.seen;
  const report: CallbackReport = {
    webhookId,
    stage,
    reason: outcome.kind === 'failed' ? outcome.reason : null,
    httpStatus: outcome.kind === 'answered' ? outcome.status : null,
    phases,
    tlsVersion: tls?.version ?? null,
    certificateExpiresInDays: tls ? Math.floor((tls.certificateEndsAt - now) / DAY_MS) : null,
    excerpt: outcome.kind === 'answered' && !outcome.isPrivate ? excerptOf(outcome.body, accessKey) : null,
  };
  if (outcome.kind === 'failed') {
    throw new Refusal('callback_send_error', { reason: FAILURE_TEXTS[outcome.reason], details: reportView(report) });
  }
  if (outcome.status === 200) return report;
  throw new Refusal('callback_response_not_200', {
    reason: {
      en: `The receiver answered with the status ${outcome.status}; only 200 counts.`,
      zh: `接收端返回的状态码为 ${outcome.status}，只有 200 表示成功。`,
    },
    details: reportView(report),
  });
}

/** The report in wire format; the same in a response and in the details of an error. */
export const reportView = (report: CallbackReport) => ({
  webhook_id: report.webhookId,
  stage: report.stage,
  reason: report.reason,
  http_status: report.httpStatus,
  phases_ms: report.phases,
  tls_version: report.tlsVersion,
  certificate_expires_in_days: report.certificateExpiresInDays,
  excerpt: report.excerpt,
});

/** The first 2 KiB of a response body as one line, without control characters, and with the key masked. */
export function excerptOf(body: Uint8Array, accessKey: Secret): string {
  const text = new TextDecoder()
    .decode(body)
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  // Masked after control characters became blanks, which may complete a key that has a blank.
  return truncate(maskKey(text.slice(0, MAX_SCANNED), accessKey.reveal()));
}

function truncate(text: string): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= MAX_EXCERPT_BYTES) return text;
  // `stream` drops an incomplete character at the end.
  return new TextDecoder().decode(bytes.subarray(0, MAX_EXCERPT_BYTES), { stream: true });
}
