// When to try again, after how long, and when to give up. Pure.
import type { ErrorFacts } from './errors.ts';
import type { Limits, Operation, OperationId } from './signatures.ts';

export const DEFAULT_LIMITS: Limits = { tries: 5, attemptMs: 30_000, totalMs: 120_000 };

/** Of a timer: a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const FIRST_DELAY_MS = 500;
const TOO_MANY_REQUESTS = 429;
/** Of the service when it is busy, and of proxies in front of it. */
const UNAVAILABLE: readonly (number | null)[] = [502, 503, 504];

/** Methods that do the same if done twice. */
const REPEATABLE_METHODS: readonly Operation['method'][] = ['GET', 'PUT', 'DELETE'];
/** Where the method says too little, or too much. */
const IS_REPEATABLE: Partial<Record<OperationId, boolean>> = {
  // A second request finds the certificate revoked.
  revokeCertificate: true,
  // Reads by POST.
  getSigningInfo: true,
  listSigningCredentials: true,
  getSigningCredential: true,
  // After a success the old access code is a wrong one, and wrong ones lock the key.
  changeCloudKeyPin: false,
};

/** Whether a request may be sent again although the first one may have been carried out. */
export const isRepeatable = (id: OperationId, { method, takesIdempotencyKey }: Operation): boolean =>
  IS_REPEATABLE[id] ?? takesIdempotencyKey ?? REPEATABLE_METHODS.includes(method);

interface Failure {
  readonly error: Pick<ErrorFacts, 'code' | 'status' | 'retryAfter'>;
  readonly isRepeatable: boolean;
  /** Requests sent so far. */
  readonly tries: number;
  readonly elapsedMs: number;
  readonly limits: Limits;
  /** From 0 to 1. */
  readonly random: number;
}

/** Milliseconds until the next try; null to give up. */
export function retryDelay({ error, isRepeatable, tries, elapsedMs, limits, random }: Failure): number | null {
  const isUnknown = error.code === 'network_error' || error.code === 'timeout' || UNAVAILABLE.includes(error.status);
  // A request beyond a rate was not carried out. Of the others that is not known.
  if (error.status !== TOO_MANY_REQUESTS && !(isUnknown && isRepeatable)) return null;
  const told = error.retryAfter === null ? null : error.retryAfter * 1000;
  // Spread, so that clients that were refused together do not return together; never sooner than told.
  const delay = told === null ? FIRST_DELAY_MS * 2 ** (tries - 1) * (0.5 + random / 2) : told * (1 + random / 4);
  return tries >= limits.tries || elapsedMs + delay >= limits.totalMs ? null : delay;
}

/** How long the next request may take: whole milliseconds, as AbortSignal.timeout wants them. */
export const attemptLimit = ({ attemptMs, totalMs }: Limits, elapsedMs: number): number =>
  Math.ceil(Math.min(Math.max(1, Math.min(attemptMs, totalMs - elapsedMs)), MAX_TIMER_MS));

/** The seconds of a Retry-After header, which may hold a date instead. */
export function retryAfterOf(value: string | null, now: number): number | null {
  if (value === null) return null;
  const seconds = / GMT$/.test(value)
    ? (Date.parse(value) - now) / 1000
    : /^\d+$/.test(value)
      ? Number(value)
      : Number.NaN;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : null;
}

/** Rejects with the signal's reason once it is aborted. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', stop);
        resolve();
      },
      Math.min(ms, MAX_TIMER_MS),
    );
    signal?.addEventListener('abort', stop, { once: true });
  });
}
