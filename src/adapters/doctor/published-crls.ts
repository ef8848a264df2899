// Compares the store with CRLs that it once published, or with the numbers of those it served: a store that knows less than they do was put back to an earlier
// state, and certificates that verifiers have seen revoked would be valid again.
import type { ReadCrl } from '../../domain/revocation/ports.ts';
import type { Diagnostic } from '../../kernel/problem.ts';
import { countOutdated, readServedNumbers } from '../ca/status/served-numbers.ts';
import { openEngine } from '../store/engine/engine.ts';
import type { Db } from '../store/engine/schema.ts';
import { publicIssuersIn } from '../store/issuance/issuers.ts';
import { crlsIn } from '../store/revocation/crls.ts';
import { revokedSerialsIn } from '../store/revocation/revoked-serials.ts';
import { type DatabaseLocation, engineAt } from '../store/store.ts';

/** Below the maximum number of parameters of a statement. */
const BATCH = 500;
const REMEDY = 'Bring the revocations back: reseal crl import CRL…';

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
    remedy: REMEDY,
  };
}

/** Of a store in use. Empty if no service has run in the folder. Never throws. */
export async function checkServedNumbers(location: DatabaseLocation, folder: string): Promise<Diagnostic[]> {
  const check = 'rollback';
  const db = openEngine(engineAt(location), () => {});
  try {
    const served = readServedNumbers(folder);
    if (!served) return [];
    if (served.rolledBackAt !== undefined) {
      const text = `the store was rolled back, found at the start of ${new Date(served.rolledBackAt).toISOString()}: CRLs had been served with higher numbers`;
      return [{ check, state: 'problem', text, remedy: `${REMEDY} ends this report` }];
    }
    const issuerIds = new Set((await publicIssuersIn(db)).map(({ id }) => id));
    const outdated = countOutdated(served.numbers, issuerIds, await crlsIn(db).heads());
    if (outdated === 0) return [{ check, state: 'ok', text: 'no CRL was served with a higher number than it has' }];
    const text = `the store looks rolled back: ${outdated} CRLs were served with a higher number`;
    return [{ check, state: 'problem', text, remedy: REMEDY }];
  } catch (error) {
    const remedy = 'Delete crl-numbers.db in the data folder; the service writes it anew.';
    return [{ check, state: 'warning', text: `cannot be told (${(error as Error).message})`, remedy }];
  } finally {
    await db.destroy();
  }
}
