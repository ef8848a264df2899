// Operator's management of the authority: issuers of one's own, and the blocklist of keys. Each change and its audit row
// are one transaction.
import { type Issuer, isActive, type PublicIssuer } from '../../domain/certificate/authority.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { CrlHead } from '../../domain/revocation/ports.ts';
import type { Store } from '../../domain/store.ts';
import { auditLog, byOperator } from '../access/audit.ts';

/** What a certificate says about itself. */
interface Described {
  readonly subject: string;
  /** Type and size. */
  readonly key: string;
  readonly notAfter: number;
  readonly fingerprint: string;
}

interface AuthorityTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly describe: (certificate: Uint8Array) => Described;
}

/** An issuer with all that an operator asks about it. */
export interface IssuerOverview extends PublicIssuer, Described {
  readonly state: 'active' | 'retired';
  readonly issued: number;
  readonly revoked: number;
  readonly crls: readonly CrlHead[];
  /** Of the OCSP responder that lives longest; null if it has none. */
  readonly responderNotAfter: number | null;
}

export function manageAuthorities({ store, now, newId, describe }: AuthorityTools) {
  const audit = auditLog({ now, newId });
  return {
    async overview(): Promise<IssuerOverview[]> {
      const all = await store.issuers.listPublic();
      const counts = await store.issuers.counts();
      const heads = await store.crls.heads();
      const overview: IssuerOverview[] = [];
      for (const one of all) {
        overview.push({
          ...one,
          ...describe(one.certificate),
          ...(counts.get(one.id) ?? { issued: 0, revoked: 0 }),
          state: isActive(one, all) ? 'active' : 'retired',
          crls: heads.filter(({ issuerId }) => issuerId === one.id),
          responderNotAfter: (await store.facts.responderExpiry(one.id)) ?? null,
        });
      }
      return overview;
    },

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
