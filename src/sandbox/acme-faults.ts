// Faults that a sandbox injects into ACME where its user asks for them, so that authors of clients see what theirs do: all
// are allowed by RFC 8555, and each is a wrapper around the real part.
import { setTimeout as sleep } from 'node:timers/promises';
import { badNonce } from '../domain/acme/nonce.ts';
import { failed } from '../domain/validation/check-result.ts';
import type { AcmeNonces } from '../usecases/acme/nonces.ts';
import type { ShowAcmeOrders } from '../usecases/acme/show-acme-orders.ts';
import type { DisturbValidation } from '../usecases/acme/validate-challenge.ts';

export interface AcmeFaultSettings {
  /** Of 100 good nonces, so many are refused. */
  readonly badNoncePercent: number;
  readonly failedValidationPercent: number;
  /** Before every validation. */
  readonly validationMs: number;
  readonly shufflesAuthorizations: boolean;
  /** Every order asks for every name, whatever is proven. */
  readonly reusesNoProofs: boolean;
}

export interface AcmeFaults {
  readonly nonces: (nonces: AcmeNonces) => AcmeNonces;
  readonly show: (show: ShowAcmeOrders) => ShowAcmeOrders;
  readonly disturb: DisturbValidation;
  readonly reusesNoProofs: boolean;
}

/** `random` returns a number from 0 to 1, without 1. */
export function acmeFaults(settings: AcmeFaultSettings, random: () => number): AcmeFaults {
  const happens = (percent: number) => random() * 100 < percent;
  return {
    reusesNoProofs: settings.reusesNoProofs,
    nonces: (nonces) => ({
      ...nonces,
      read(text) {
        const nonce = nonces.read(text);
        if (happens(settings.badNoncePercent)) throw badNonce();
        return nonce;
      },
    }),
    show: (show) => ({
      ...show,
      async order(...asked) {
        const shown = await show.order(...asked);
        const { authorizations } = shown;
        return settings.shufflesAuthorizations ? { ...shown, authorizations: shuffled(authorizations, random) } : shown;
      },
    }),
    async disturb(_name, signal) {
      // Ends early with the deadline of the check, which decides then.
      if (settings.validationMs > 0) await sleep(settings.validationMs, undefined, { signal }).catch(() => {});
      return happens(settings.failedValidationPercent) ? CHOSEN_TO_FAIL : null;
    },
  };
}

/** Fisher–Yates. */
function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const order = [...items];
  for (let last = order.length - 1; last > 0; last -= 1) {
    const chosen = Math.floor(random() * (last + 1));
    [order[last], order[chosen]] = [order[chosen]!, order[last]!];
  }
  return order;
}

const CHOSEN_TO_FAIL = failed(
  'unauthorized',
  'RESEAL_SANDBOX_FAILED_VALIDATIONS made this validation fail. Order again.',
  '该验证因 RESEAL_SANDBOX_FAILED_VALIDATIONS 而失败，请重新下单。',
);
