// The life of issuers after they are made: requested, installed, rotated, revoked; and of roots whose key leaves the store.
// Each act and its ceremony record are one transaction.
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditEntry } from '../../domain/access/ports.ts';
import type { Issuer, IssuerSlot, PublicIssuer } from '../../domain/certificate/authority.ts';
import type { RevocationReason } from '../../domain/certificate/certificate.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import {
  type AlternateChain,
  MAX_ALTERNATES,
  MAX_PENDING_ISSUERS,
  type PendingIssuer,
} from '../../domain/issuance/custody.ts';
import type { CrlEntry, PublishedCrl, ReadCrl } from '../../domain/revocation/ports.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { voidLostIssuances } from '../lease/void-lost-issuances.ts';
import { type Artifacts, recordCeremony } from './ceremonies.ts';

interface CustodyTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
}

/** Longer than the lease of a signer, also of one that waits for a linter. */
const DRAIN_MS = 60_000;
const DRAIN_PAUSE_MS = 50;
/** A root revokes authorities, of which there are few. */
const MAX_ENTRIES = 10_000;

/**
 * Waits until nothing is being signed by issuers that were retired. What a lost signer has left is voided when its lease
 * ends. Returns how many are left after the longest wait.
 */
export async function drainRetired({ store, now, newId }: CustodyTools): Promise<number> {
  const deadline = performance.now() + DRAIN_MS;
  for (;;) {
    const left = await store.signings.countUnderRetired();
    if (left === 0 || performance.now() > deadline) return left;
    await voidLostIssuances(store, now, newId);
    await sleep(DRAIN_PAUSE_MS);
  }
}

/** Everything that the complete list of an issuer has to show: nothing is dropped that the last one showed. */
export async function entriesOf(db: Repositories, issuerId: string): Promise<CrlEntry[]> {
  const crl = { issuerId, shard: 0 };
  const expiredBefore = (await db.crls.head(crl))?.expiredBefore ?? 0;
  const all = { upTo: Number.MAX_SAFE_INTEGER, expiredBefore, after: '', limit: MAX_ENTRIES };
  const listed = await db.revokedSerials.page(crl, all);
  const unlisted = (await db.revokedSerials.unlisted(crl, MAX_ENTRIES)).filter(({ wasListed }) => !wasListed);
  return [...listed, ...unlisted.map(({ serial, reason, revokedAt }) => ({ serial, reason, revokedAt }))];
}

/** Whether the list of its parent shows an issuer, or will. */
export async function isRevoked(
  { revokedSerials }: Pick<Repositories, 'revokedSerials'>,
  { parentId }: Pick<PublicIssuer, 'parentId'>,
  { serial }: { readonly serial: string },
): Promise<boolean> {
  if (parentId === null) return false;
  const entry = { issuerId: parentId, shard: 0, serial, reason: 'superseded', revokedAt: 0 } as const;
  return (await revokedSerials.reasonsOf(parentId, [entry])).has(serial);
}

export interface Revoked {
  readonly issuer: PublicIssuer;
  readonly parentId: string;
  readonly serial: string;
  readonly notAfter: number;
  readonly reason: RevocationReason;
}

export interface TakenOffline {
  readonly root: PublicIssuer;
  /** The last list that the key signs here: valid until the next one comes from the other machine. */
  readonly list: Omit<PublishedCrl, 'issuerId' | 'shard'>;
  readonly replaces: number | null;
  readonly outputs: Artifacts;
}

export function keepCustody(tools: CustodyTools) {
  const { store, now } = tools;
  const record = (tx: Repositories, act: Parameters<typeof recordCeremony>[2]) => recordCeremony(tools, tx, act);
  /** Acts that change nothing in the store. */
  const recordAlone = (act: Parameters<typeof recordCeremony>[2]): Promise<AuditEntry> =>
    store.transaction((tx) => record(tx, act));

  return {
    record: recordAlone,
    ceremonies: (limit: number) => store.audit.ceremonies(limit),
    drain: () => drainRetired(tools),

    /** Stores a key whose request is signed elsewhere. */
    request: (pending: PendingIssuer, csr: string): Promise<AuditEntry> =>
      store.transaction(async (tx) => {
        if ((await tx.pendingIssuers.count()) >= MAX_PENDING_ISSUERS) {
          throw new Problem(
            EXIT.refused,
            `${MAX_PENDING_ISSUERS} requests wait for their certificates`,
            'Install one of them first: reseal ca install CHAIN',
          );
        }
        await tx.pendingIssuers.insert(pending);
        const facts = { key_type: pending.keyType, purposes: pending.purposes.join(' ') };
        return await record(tx, { action: 'authority:requested', subject: pending.id, facts, outputs: { csr } });
      }),

    /** Turns a pending key into an issuer, which takes over its purposes. */
    install: (chain: readonly [Issuer, ...Issuer[]], text: string): Promise<{ issuer: Issuer; ceremony: AuditEntry }> =>
      store.transaction(async (tx) => {
        await tx.signings.hold();
        if (!(await tx.pendingIssuers.delete(chain[0].id))) throw alreadyInstalled(chain[0].id);
        const issuer = await tx.issuers.adopt(chain);
        const facts = { key_type: issuer.keyType, purposes: issuer.purposes.join(' '), policy: issuer.policy };
        const inputs = { chain: text };
        const ceremony = await record(tx, { action: 'authority:installed', subject: issuer.id, facts, inputs });
        return { issuer, ceremony };
      }),

    /** Gives a slot to a new issuer. Nothing is written down under the previous one afterwards. */
    rotate: (successor: Issuer, slot: IssuerSlot, previousId: string): Promise<AuditEntry> =>
      store.transaction(async (tx) => {
        await tx.signings.hold();
        if (!(await tx.issuers.succeed(successor, slot, previousId))) throw changedMeanwhile();
        const facts = { purpose: slot.purpose, key_type: slot.keyType, previous_id: previousId };
        const outputs = { certificate: successor.certificate };
        return await record(tx, { action: 'authority:rotated', subject: successor.id, facts, outputs });
      }),

    /** Records that an issuing authority is revoked, and stops its use. Publishing the list is up to the caller. */
    revoke: ({ issuer, parentId, serial, notAfter, reason }: Revoked): Promise<AuditEntry> =>
      store.transaction(async (tx) => {
        await tx.signings.hold();
        const entry = { issuerId: parentId, shard: 0, serial, reason, revokedAt: now() };
        if (await isRevoked(tx, { parentId }, { serial })) {
          throw new Problem(EXIT.refused, `${issuer.id} is revoked already`, 'See: reseal ca list');
        }
        await tx.revokedSerials.insert({ ...entry, certificateId: null, notAfter });
        await tx.issuers.retire(issuer.id);
        const facts = { serial_number: serial, reason, root_id: parentId, purposes: issuer.purposes.join(' ') };
        const inputs = { certificate: issuer.certificate };
        return await record(tx, { action: 'authority:revoked', subject: issuer.id, facts, inputs });
      }),

    /** Removes the key of a root, and publishes the list that is served until the next one. */
    takeOffline: ({ root, list, replaces, outputs }: TakenOffline): Promise<AuditEntry> =>
      store.transaction(async (tx) => {
        const at = now();
        const crl = { issuerId: root.id, shard: 0 };
        const changes = await tx.revokedSerials.unlisted(crl, MAX_ENTRIES);
        if (!(await tx.crls.publish({ ...crl, ...list }, replaces, changes, at))) throw changedMeanwhile();
        if (!(await tx.issuers.removeKey(root.id))) throw changedMeanwhile();
        const facts = { key_type: root.keyType, crl_number: list.number };
        return await record(tx, {
          ...{ action: 'root:exported', subject: root.id, facts, inputs: { certificate: root.certificate } },
          outputs: { ...outputs, crl: list.der },
        });
      }),

    /** Publishes a list that was signed on another machine. It must show all that is recorded. */
    installCrl: (crl: ReadCrl): Promise<AuditEntry> =>
      store.transaction(async (tx) => {
        const at = now();
        const ref = { issuerId: crl.issuerId, shard: 0 };
        const head = await tx.crls.head(ref);
        requireNewer(crl, head?.number ?? 0, at);
        const listed = new Map(crl.entries.map((one) => [one.serial, one.reason]));
        const recorded = await entriesOf(tx, crl.issuerId);
        const missing = recorded.filter(({ serial, reason }) => listed.get(serial) !== reason);
        if (missing.length > 0) {
          throw new Problem(
            EXIT.refused,
            `the list lacks what was revoked since its request: ${missing.map(({ serial }) => serial).join(', ')}`,
            'Make a new request, and have it signed: reseal ca root crl-request ID OUT',
          );
        }
        for (const entry of crl.entries) {
          const isKnown = (await tx.revokedSerials.reasonsOf(crl.issuerId, [entry])).has(entry.serial);
          if (!isKnown) await tx.revokedSerials.insert({ ...entry, certificateId: null, notAfter: crl.issuerNotAfter });
        }
        const changes = await tx.revokedSerials.unlisted(ref, MAX_ENTRIES);
        const { number, thisUpdate, nextUpdate, der, entries } = crl;
        const published = { ...ref, number, thisUpdate, nextUpdate, der, entries: entries.length, addresses: '' };
        const expiredBefore = head?.expiredBefore ?? 0;
        if (!(await tx.crls.publish({ ...published, expiredBefore }, head?.number ?? null, changes, at))) {
          throw changedMeanwhile();
        }
        const facts = { crl_number: number, entries: entries.length, next_update: new Date(nextUpdate).toISOString() };
        return await record(tx, { action: 'root:crl_installed', subject: crl.issuerId, facts, inputs: { crl: der } });
      }),

    /** Stores another way up from an issuer. */
    crossSign: (chain: AlternateChain, text: string): Promise<AuditEntry> =>
      store.transaction(async (tx) => {
        if ((await tx.alternateChains.of(chain.issuerId)).length >= MAX_ALTERNATES) {
          throw new Problem(EXIT.refused, `the issuer has ${MAX_ALTERNATES} alternate chains`, 'Use one of them.');
        }
        await tx.alternateChains.insert(chain);
        const facts = { fingerprint: chain.fingerprint, certificates: chain.certificates.length };
        const act = {
          action: 'authority:cross_signed',
          subject: chain.issuerId,
          facts,
          inputs: { chain: text },
        } as const;
        return await record(tx, act);
      }),
  };
}

/** A list from a clock that is a little ahead is good. */
const MAX_AHEAD_MS = 300_000;

function requireNewer({ number, thisUpdate, nextUpdate, shard, entries }: ReadCrl, current: number, at: number): void {
  const remedy = 'Make a new request, and have it signed: reseal ca root crl-request ID OUT';
  if (shard !== 0 || entries.length > MAX_ENTRIES) {
    throw new Problem(EXIT.refused, 'the list is not the complete list of its issuer', remedy);
  }
  if (number <= current) {
    throw new Problem(EXIT.refused, `number ${current} is published already, and the list has ${number}`, remedy);
  }
  if (nextUpdate <= at) throw new Problem(EXIT.refused, 'the list has expired', remedy);
  if (thisUpdate > at + MAX_AHEAD_MS) {
    throw new Problem(EXIT.refused, 'the list is from the future', 'Correct the clock of the machine that signed it.');
  }
}

const changedMeanwhile = (): Problem =>
  new Problem(EXIT.refused, 'another process has changed the issuers or the list meanwhile', 'Run the command again.');
const alreadyInstalled = (id: string): Problem =>
  new Problem(EXIT.refused, `the request ${id} was answered already`, 'See: reseal ca list');
