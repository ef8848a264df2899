// Renewal information (RFC 9773): when a client should renew a certificate. A window in the last third of its life, spread
// over certificates, so that those issued together are not renewed together; a window that has passed, once the certificate
// is revoked or will be.

import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../kernel/durations.ts';
import type { IssuedCertificate } from '../certificate/certificate.ts';

export interface RenewalInfo {
  readonly start: number;
  readonly end: number;
  readonly retryAfterSeconds: number;
}

/** Shares of the certificate's life. Begins are spread over the twelfth after two thirds; a window is half as long. */
const START = 2 / 3;
const SPREAD = 1 / 12;
const LENGTH = 1 / 24;
const RETRY_SECONDS = (6 * HOUR_MS) / SECOND_MS;
const URGENT_RETRY_SECONDS = MINUTE_MS / SECOND_MS;

type Renewable = Pick<IssuedCertificate, 'preparation' | 'revocation'>;

export function renewalInfo({ preparation, revocation }: Renewable, now: number): RenewalInfo {
  const { notBefore, notAfter, serial } = preparation;
  // It is replaced before it is revoked by clients that ask in time: a scheduled revocation counts from its first moment.
  if (revocation) {
    const end = now - MINUTE_MS;
    return { start: end - HOUR_MS, end, retryAfterSeconds: URGENT_RETRY_SECONDS };
  }
  const life = notAfter - notBefore;
  const start = toSecond(notBefore + life * (START + SPREAD * fractionOf(serial)));
  return { start, end: toSecond(start + life * LENGTH), retryAfterSeconds: retryAfter(life) };
}

/** A short-lived certificate is asked about several times before its window ends. */
const retryAfter = (life: number): number =>
  Math.max(URGENT_RETRY_SECONDS, Math.min(RETRY_SECONDS, Math.floor((life * LENGTH) / SECOND_MS)));

const toSecond = (at: number): number => Math.floor(at / SECOND_MS) * SECOND_MS;

/** The same for a certificate each time, and evenly distributed: serial numbers are random. */
const fractionOf = (serial: string): number => Number.parseInt(serial.slice(-8), 16) / 2 ** 32;
