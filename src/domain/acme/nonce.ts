// Nonces: a time and random bits, authenticated by the service, so that none is stored before it was used.

import { HOUR_MS } from '../../kernel/durations.ts';
import { CLOCK_TOLERANCE_MS } from '../clock.ts';
import { AcmeProblem } from './problem.ts';

export const NONCE_MS = HOUR_MS;

/** What is remembered of a used nonce. */
export interface Nonce {
  readonly id: string;
  readonly expiresAt: number;
}

/** One from the future is refused, beyond what clocks of instances may differ: its use would be forgotten too early. */
export const isCurrent = (issuedAt: number, now: number): boolean =>
  issuedAt + NONCE_MS > now && issuedAt <= now + CLOCK_TOLERANCE_MS;

export const badNonce = (): AcmeProblem =>
  new AcmeProblem('badNonce', {
    en: 'The nonce was used already, has expired, or is none of this service. Send the request again with the Replay-Nonce of this answer.',
    zh: 'nonce 已被使用、已过期或不是本服务签发的，请使用本响应的 Replay-Nonce 重新发送请求。',
  });
