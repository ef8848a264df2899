// Operator's management of the authority: issuers of one's own, and the blocklist of keys. Each change and its audit row
// are one transaction.
import type { Issuer } from '../../domain/certificate/authority.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { auditLog, byOperator } from '../access/audit.ts';

export function manageAuthorities({ store, now, newId }: { store: Store; now: Clock; newId: NewId }) {
  const audit = auditLog({ now, newId });
  return {
    list: () => store.issuers.listPublic(),
    counts: () => store.issuers.counts(),

    /** Takes an issuing authority and those above it. */
    adopt: (chain: readonly [Issuer, ...Issuer[]]): Promise<Issuer> =>
      store.transaction(async (tx) => {
        const issuing = await tx.issuers.adopt(chain);
        const details = { key_type: issuing.keyType, purposes: issuing.purposes.join(' '), policy: issuing.policy };
        await audit(tx, byOperator(null), 'authority:imported', issuing.id, details);
        return issuing;
      }),

    block: (fingerprints: readonly string[]): Promise<void> =>
      store.transaction(async (tx) => {
        await tx.blockedKeys.addAll(fingerprints, 'imported', now());
        await audit(tx, byOperator(null), 'blocklist:imported', 'blocklist', { keys: fingerprints.length });
      }),
  };
}
