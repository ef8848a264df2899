// Compares the store with CRLs that it once published: a store that knows less than they do was put back to an earlier
// state, and certificates that verifiers have seen revoked would be valid again.
import type { ReadCrl } from '../../domain/revocation/ports.ts';
import type { Diagnostic } from '../../kernel/problem.ts';
import type { Db } from '../store/engine/schema.ts';
import { crlsIn } from '../store/revocation/crls.ts';
import { revokedSerialsIn } from '../store/revocation/revoked-serials.ts';

/** Below the maximum number of parameters of a statement. */
const BATCH = 500;

export async function checkPublishedCrls(db: Db, crls: readonly ReadCrl[]): Promise<Diagnostic> {
  const check = 'rollback';
  let [newer, unknown] = [0, 0];
  for (const { issuerId, shard, number, entries } of crls) {
    const head = shard === null ? undefined : await crlsIn(db).head({ issuerId, shard });
    if (shard !== null && number > (head?.number ?? 0)) newer += 1;
    for (let from = 0; from < entries.length; from += BATCH) {
      const batch = entries.slice(from, from + BATCH);
      const known = await revokedSerialsIn(db).reasonsOf(issuerId, batch);
      unknown += batch.filter(({ serial }) => !known.has(serial)).length;
    }
  }
  if (newer + unknown === 0) return { check, state: 'ok', text: `the store knows all that ${crls.length} CRLs say` };
  return {
    check,
    state: 'problem',
    text: `the store looks rolled back: ${newer} of ${crls.length} published CRLs are newer than its own, and ${unknown} serial numbers on them are not revoked here`,
    remedy: 'Bring the revocations back: reseal crl import CRL…',
  };
}
