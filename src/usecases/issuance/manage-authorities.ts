// Operator's management of the authority: issuers of one's own, and the blocklist of keys. Each change and its audit row
// are one transaction.
import { type Issuer, isActive, type PublicIssuer } from '../../domain/certificate/authority.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { CrlHead } from '../../domain/revocation/ports.ts';
import type { Store } from '../../domain/store.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { auditLog, byOperator } from '../access/audit.ts';
import { recordCeremony } from './ceremonies.ts';
import { drainRetired, isRevoked } from './keep-custody.ts';

/** What a certificate says about itself. */
interface Described {
  readonly subject: string;
  /** Type and size. */
  readonly key: string;
  readonly notAfter: number;
  readonly fingerprint: string;
  /** Hexadecimal, lower case. */
  readonly serial: string;
}

interface AuthorityTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly describe: (certificate: Uint8Array) => Described;
}

/** An issuer with all that an operator asks about it. */
export interface IssuerOverview extends PublicIssuer, Described {
  readonly state: 'active' | 'retired' | 'revoked';
  readonly issued: number;
  readonly revoked: number;
  readonly crls: readonly CrlHead[];
  /** Of the OCSP responder that lives longest; null if it has none. */
  readonly responderNotAfter: number | null;
}

export function manageAuthorities(tools: AuthorityTools) {
  const { store, now, describe } = tools;
  const audit = auditLog(tools);
  return {
    async overview(): Promise<IssuerOverview[]> {
      const all = await store.issuers.listPublic();
      const counts = await store.issuers.counts();
      const heads = await store.crls.heads();
      const overview: IssuerOverview[] = [];
      for (const one of all) {
        const described = describe(one.certificate);
        overview.push({
          ...one,
          ...described,
          ...(counts.get(one.id) ?? { issued: 0, revoked: 0 }),
          state: (await isRevoked(store, one, described)) ? 'revoked' : isActive(one, all) ? 'active' : 'retired',
          crls: heads.filter(({ issuerId }) => issuerId === one.id),
          responderNotAfter: (await store.facts.responderExpiry(one.id)) ?? null,
        });
      }
      return overview;
    },

    /** Takes an issuing authority and those above it. `text`: the chain as it was given. */
    async adopt(chain: readonly [Issuer, ...Issuer[]], text: string): Promise<Issuer> {
      const issuing = await store.transaction(async (tx) => {
        await tx.signings.hold();
        const known = await tx.issuers.listPublic();
        const [{ certificate }] = chain;
        const same = known.find((one) => Buffer.compare(one.certificate, certificate) === 0);
        if (same && (await isRevoked(tx, same, describe(certificate)))) {
          throw new Problem(EXIT.refused, 'this authority is revoked', 'Import another one.');
        }
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
