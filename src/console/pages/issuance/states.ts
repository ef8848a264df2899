// States of orders and certificates as people say them, each with a shape and a word.
import type { View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, type Tone } from '../../shell/parts.ts';
import type { Schema } from '../../shell/wire.ts';

type OrderStatus = Schema<'OrderStatus'>;
type CertificateStatus = Schema<'CertificateStatus'>;

const ORDER_TONES: Readonly<Record<OrderStatus, Tone>> = {
  domain_verifing: 'waiting',
  issuing: 'waiting',
  issued: 'good',
  reissuing: 'waiting',
  revoked: 'bad',
  canceled: 'over',
  expired: 'over',
  rejected: 'bad',
};
export const ORDER_STATUSES = Object.keys(ORDER_TONES) as OrderStatus[];

const CERTIFICATE_TONES: Readonly<Record<CertificateStatus, Tone>> = {
  pending: 'waiting',
  issued: 'good',
  voided: 'over',
  canceled: 'over',
  revoked: 'bad',
};

export const orderWord = texts<OrderStatus>({
  en: {
    domain_verifing: 'Waiting for a record',
    issuing: 'Being issued',
    issued: 'Issued',
    reissuing: 'Reissue waits for a record',
    revoked: 'Revoked',
    canceled: 'Canceled',
    expired: 'Expired',
    rejected: 'Given up: never proven',
  },
  zh: {
    domain_verifing: '等待解析记录',
    issuing: '签发中',
    issued: '已签发',
    reissuing: '重签等待解析记录',
    revoked: '已吊销',
    canceled: '已取消',
    expired: '已过期',
    rejected: '已拒绝：未完成验证',
  },
});

const certificateWord = texts<CertificateStatus | 'ended'>({
  en: {
    pending: 'Waiting for a record',
    issued: 'Valid',
    ended: 'Ended',
    voided: 'Interrupted',
    canceled: 'Canceled',
    revoked: 'Revoked',
  },
  zh: {
    pending: '等待解析记录',
    issued: '有效',
    ended: '已到期',
    voided: '已中断',
    canceled: '已取消',
    revoked: '已吊销',
  },
});

export const orderBadge = (status: OrderStatus): View => badge(ORDER_TONES[status], orderWord(status));

/** One that has ended is `issued` as before: the date says so. */
export function certificateBadge(status: CertificateStatus, notAfter: string | null = null): View {
  const isEnded = status === 'issued' && notAfter !== null && Date.parse(notAfter) < Date.now();
  return isEnded ? badge('over', certificateWord('ended')) : badge(CERTIFICATE_TONES[status], certificateWord(status));
}

/** How an order or certificate is called in a list: by its name, or else by its id. */
export const calledBy = ({ common_name, dns_names, id }: Called): string => common_name ?? dns_names[0] ?? id;
interface Called {
  readonly id: string;
  readonly common_name: string | null;
  readonly dns_names: readonly string[];
}
