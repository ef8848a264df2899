// Checks that revocations are published. Expired CRLs, unlisted revocations and overdue scheduled ones all mean that no
// service is running: a running one handles them within seconds.

import { X509Certificate } from 'node:crypto';
import { isKeyHere, type PublicIssuer } from '../../domain/certificate/authority.ts';
import { type CrlRef, OFFLINE_NOTICE_MS } from '../../domain/revocation/revocation.ts';
import { HOUR_MS } from '../../kernel/durations.ts';
import type { Diagnostic } from '../../kernel/problem.ts';
import { RENEW_AFTER_MS } from '../ca/status/crl-publisher.ts';
import type { Db } from '../store/engine/schema.ts';
import { publicIssuersIn } from '../store/issuance/issuers.ts';
import { crlsIn } from '../store/revocation/crls.ts';
import { revocationsIn } from '../store/revocation/revocations.ts';
import { revokedSerialsIn } from '../store/revocation/revoked-serials.ts';

/** Grace period before a scheduled revocation counts as overdue. */
const OVERDUE_MS = 60_000;
/** More than the CRLs of all issuers a store may ever have. */
const MAX_UNLISTED = 10_000;
const OFFLINE_REMEDY =
  'Have the next list signed: reseal ca root crl-request ID OUT, reseal ca root sign-crl OUT, reseal crl install CRL';
const REMEDY = 'Start the service, or read its log: it publishes CRLs and revokes by itself while it runs.';

export async function checkRevocation(db: Db, now: number): Promise<Diagnostic> {
  const check = 'revocation';
  const { isInUse, hasKey, isOffline } = await issuersIn(db, now);
  const all = (await crlsIn(db).heads()).filter(isInUse);
  const heads = all.filter(hasKey);
  const overdue = await revocationsIn(db).due(now - OVERDUE_MS, 1);
  const unlisted = (await revokedSerialsIn(db).crlsWithUnlisted(MAX_UNLISTED)).filter(isInUse);
  const expired = heads.filter(({ nextUpdate }) => nextUpdate <= now).length;
  const stale = heads.filter(({ thisUpdate }) => thisUpdate + RENEW_AFTER_MS + HOUR_MS <= now).length;
  if (expired > 0) {
    const text = `${expired} of ${heads.length} CRLs have expired: verifiers may reject the certificates they cover`;
    return { check, state: 'problem', text, remedy: REMEDY };
  }
  const offline = all.filter(isOffline);
  const due = offline.filter(({ nextUpdate }) => nextUpdate - OFFLINE_NOTICE_MS <= now);
  const [first] = due.toSorted((a, b) => a.nextUpdate - b.nextUpdate);
  if (first) {
    const state = first.nextUpdate <= now ? 'problem' : 'warning';
    const text = `the list of the offline root ${first.issuerId} ${state === 'problem' ? 'has expired' : 'expires'} on ${new Date(first.nextUpdate).toISOString()}`;
    return { check, state, text, remedy: OFFLINE_REMEDY };
  }
  const waiting = unlisted.find(isOffline);
  if (waiting) {
    const text = `a revocation is not on the list of the offline root ${waiting.issuerId} yet`;
    return { check, state: 'problem', text, remedy: OFFLINE_REMEDY };
  }
  const foreign = all.filter((one) => !hasKey(one) && one.nextUpdate <= now).length;
  if (foreign > 0) {
    const text = `${foreign} CRLs of issuers whose key is not here have expired`;
    const remedy = 'Have the issuer sign a new one, and import it: reseal crl import CRL…';
    return { check, state: 'problem', text, remedy };
  }
  if (overdue.length > 0) return { check, state: 'problem', text: 'a scheduled revocation is overdue', remedy: REMEDY };
  if (unlisted.length > 0) return { check, state: 'warning', text: 'a revocation is not on a CRL yet', remedy: REMEDY };
  if (stale > 0) {
    const text = `${stale} of ${heads.length} CRLs were not renewed for more than a day`;
    return { check, state: 'warning', text, remedy: REMEDY };
  }
  return { check, state: 'ok', text: all.length === 0 ? 'no CRLs yet' : `${all.length} CRLs are current` };
}

interface KnownIssuers {
  /** CRLs of expired issuers are not renewed: no verifier needs them. */
  isInUse(list: CrlRef): boolean;
  /** CRLs of other issuers cannot be renewed here. */
  hasKey(list: CrlRef): boolean;
  /** Roots of ours whose key signs on another machine. */
  isOffline(list: CrlRef): boolean;
}

async function issuersIn(db: Db, now: number): Promise<KnownIssuers> {
  const issuers = await publicIssuersIn(db);
  const isExpired = ({ certificate }: PublicIssuer) => new X509Certificate(certificate).validToDate.getTime() < now;
  const expired = new Set(issuers.filter(isExpired).map(({ id }) => id));
  const keyed = new Set(issuers.filter(isKeyHere).map(({ id }) => id));
  const offline = new Set(issuers.filter(({ keyPlace }) => keyPlace === 'offline').map(({ id }) => id));
  return {
    isInUse: ({ issuerId }) => !expired.has(issuerId),
    hasKey: ({ issuerId }) => keyed.has(issuerId),
    isOffline: ({ issuerId }) => offline.has(issuerId),
  };
}
