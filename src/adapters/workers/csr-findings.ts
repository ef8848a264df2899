// The job that reads a CSR and inspects its key. Refusals travel as text, because an instance of Refusal does not survive
// structured cloning; inspect-csr.ts makes them refusals again.
import { Refusal } from '../../domain/errors.ts';
import { readCsr } from '../ca/csr.ts';
import { requireCompositeModulus, requireStrongKey } from '../ca/public-key.ts';

type CsrFindings = {
  /** What is wrong with the CSR, as JSON; empty if it is good. Without a good one there is no key. */
  readonly fault: string;
  /** Why the key is weak, likewise. */
  readonly weakness: string;
  readonly type: string;
  readonly bits: number;
  readonly fingerprint: string;
  readonly spki: Uint8Array;
};

/** `isNew`: 1 if whether the modulus is a prime is not known yet, else 0. */
export function csrFindings({ text, isNew }: { readonly text: string; readonly isNew: number }): CsrFindings {
  const key = { type: '', bits: 0, fingerprint: '', spki: new Uint8Array(), weakness: '' };
  try {
    const { publicKey } = readCsr(text);
    const weakness = faultOf(() => {
      requireStrongKey(publicKey);
      if (isNew === 1) requireCompositeModulus(publicKey);
    });
    return { ...publicKey, fault: '', weakness };
  } catch (error) {
    return { ...key, fault: textOf(error) };
  }
}

function faultOf(check: () => void): string {
  try {
    check();
    return '';
  } catch (error) {
    return textOf(error);
  }
}

function textOf(error: unknown): string {
  if (!(error instanceof Refusal)) throw error;
  const { field, reason } = error.facts;
  return JSON.stringify({ field, reason });
}
