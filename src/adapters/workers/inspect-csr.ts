// Reads CSRs and inspects their keys in worker threads, where that would hold up the event loop: csr-findings.ts is what
// runs there. Each RSA modulus is examined once, as long as it is remembered, because looking for a prime takes long.
import type { InspectedCsr, KeyType, PublicKey } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import { fairSemaphore } from '../../kernel/concurrency.ts';
import { type ParsedCsr, parseCsr, verifiedCsr } from '../ca/csr.ts';
import { isCostly, requireStrongKey } from '../ca/public-key.ts';
import type { JobRunner, Pool } from './pool.ts';

/** About a megabyte. */
const MAX_KNOWN = 10_000;
/** Ordinary RSA keys wait here, by turns, where none is refused: a burst of them must not overflow the pool's queue. */
const IN_POOL = 16;

/** A promise for a CSR that is costly to verify; any other is verified, on the event loop, when its key is asked for. */
export type InspectCsr = (text: string, accountId: AccountId) => InspectedCsr | Promise<InspectedCsr>;

interface CsrInspector {
  readonly inspectCsr: InspectCsr;
  /** Refuses weak keys. One that was found good is not examined again, as long as it is remembered. */
  requireStrongKey(key: PublicKey): void;
}

export function csrInspector(pool: Pick<Pool, 'of'>, maxKnown = MAX_KNOWN): CsrInspector {
  /** Fingerprints of RSA keys that were examined and found good; the oldest is forgotten. */
  const known = new Set<string>();
  const turn = fairSemaphore(IN_POOL);

  function inspect(text: string, accountId: AccountId): InspectedCsr | Promise<InspectedCsr> {
    const parsed = parsedOrRefused(text);
    if (parsed instanceof Refusal) return refusedCsr(parsed);
    const { publicKey } = parsed;
    const isHigh = isCostly(publicKey);
    // A new modulus costs an exponentiation besides: 3 ms at 2048 bits, 20 at 4096.
    const isNew = publicKey.type === 'rsa' && !known.has(publicKey.fingerprint);
    if (!isHigh && !isNew) {
      return { publicKey: () => verifiedCsr(parsed).publicKey, requireStrong: () => requireStrong(publicKey) };
    }
    return inTurn(isHigh ? undefined : turn(accountId), async () => {
      const { isStrong, ...found } = await inspectCsr(pool.of(accountId), text, isNew);
      if (isNew && isStrong) remember(publicKey.fingerprint);
      return found;
    });
  }

  function requireStrong(key: PublicKey): void {
    if (!known.has(key.fingerprint)) requireStrongKey(key);
  }

  function remember(fingerprint: string): void {
    known.add(fingerprint);
    const [oldest] = known;
    if (known.size > maxKnown && oldest !== undefined) known.delete(oldest);
  }

  return { inspectCsr: inspect, requireStrongKey: requireStrong };
}

function parsedOrRefused(text: string): ParsedCsr | Refusal {
  try {
    return parseCsr(text);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** What is wrong with a CSR is said when its turn among the checks of a request comes. */
function refusedCsr(refusal: Refusal): InspectedCsr {
  const refused = (): never => {
    throw refusal;
  };
  return { publicKey: refused, requireStrong: refused };
}

async function inTurn<T>(turn: Promise<Disposable> | undefined, work: () => Promise<T>): Promise<T> {
  using _ = await turn;
  return await work();
}

interface Findings extends InspectedCsr {
  readonly isStrong: boolean;
}

/** `isNew`: whether the modulus may be a prime is not known yet. */
export async function inspectCsr(pool: JobRunner, text: string, isNew = true): Promise<Findings> {
  const { fault, weakness, type, bits, fingerprint, spki } = await pool.run('inspectCsr', {
    ...{ text, isNew: isNew ? 1 : 0 },
  });
  const key: PublicKey = { type: type as KeyType, bits, fingerprint, spki };
  return {
    isStrong: fault === '' && weakness === '',
    publicKey() {
      refuse(fault);
      return key;
    },
    requireStrong: () => refuse(weakness),
  };
}

function refuse(fault: string): void {
  if (fault !== '') throw new Refusal('invalid_csr', JSON.parse(fault));
}
