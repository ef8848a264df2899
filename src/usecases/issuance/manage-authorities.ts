// Operator's management of the authority: issuers of one's own, and the blocklist of keys. Each change and its audit row
// are one transaction.
import type { Issuer } from '../../domain/certificate/authority.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { auditLog, byOperator } from '../access/audit.ts';
import { recordCeremony } from './ceremonies.ts';
import { drainRetired } from './keep-custody.ts';

export function manageAuthorities(tools: { store: Store; now: Clock; newId: NewId }) {
  const { store, now } = tools;
  const audit = auditLog(tools);
  return {
    list: () => store.issuers.listPublic(),
    counts: () => store.issuers.counts(),

    /** Takes an issuing authority and those above it. `text`: the chain as it was given. */
    async adopt(chain: readonly [Issuer, ...Issuer[]], text: string): Promise<Issuer> {
      const issuing = await store.transaction(async (tx) => {
        await tx.signings.hold();
        const adopted = await tx.issuers.adopt(chain);
        const facts = { key_type: adopted.keyType, purposes: adopted.purposes.join(' '), policy: adopted.policy };
        const act = { action: 'authority:imported', subject: adopted.id, facts, inputs: { chain: text } } as const;
        await recordCeremony(tools, tx, act);
        return adopted;
      });
      await drainRetired(tools);
      return issuing;
    },

    block: (fingerprints: readonly string[]): Promise<void> =>
      store.transaction(async (tx) => {
        await tx.blockedKeys.addAll(fingerprints, 'imported', now());
        await audit(tx, byOperator(null), 'blocklist:imported', 'blocklist', { keys: fingerprints.length });
      }),
  };
}
