// Does the world see what is revoked? Lists that have run out, revocations that no list shows, and scheduled ones whose
// time has passed all mean that nobody is at work: the service does these things by itself while it runs.

import { X509Certificate } from 'node:crypto';
import type { CrlRef } from '../../domain/revocation/revocation.ts';
import { HOUR_MS, MINUTE_MS } from '../../kernel/durations.ts';
import type { Finding } from '../../kernel/problem.ts';
import { RENEW_AFTER_MS } from '../ca/status/crl-publisher.ts';
import { bytesFrom } from '../store/engine/columns.ts';
import type { Db } from '../store/engine/schema.ts';
import { crlsIn } from '../store/revocation/crls.ts';
import { revocationsIn } from '../store/revocation/revocations.ts';
import { revokedSerialsIn } from '../store/revocation/revoked-serials.ts';

/** What a running service does within seconds is late after this. */
const LATE_MS = MINUTE_MS;
/** More than all lists of any issuers that were ever here. */
const MAX_UNLISTED = 10_000;
const REMEDY = 'Start the service, or look into its log: it publishes and revokes by itself while it runs.';

export async function checkRevocation(db: Db, now: number): Promise<Finding> {
  const check = 'revocation';
  const isInUse = await issuersInUse(db, now);
  const heads = (await crlsIn(db).heads()).filter(isInUse);
  const late = await revocationsIn(db).due(now - LATE_MS, 1);
  const unlisted = (await revokedSerialsIn(db).crlsWithUnlisted(MAX_UNLISTED)).filter(isInUse);
  const over = heads.filter(({ nextUpdate }) => nextUpdate <= now).length;
  const old = heads.filter(({ thisUpdate }) => thisUpdate + RENEW_AFTER_MS + HOUR_MS <= now).length;
  if (over > 0) {
    const text = `${over} of ${heads.length} lists have run out: verifiers refuse what they are for`;
    return { check, state: 'problem', text, remedy: REMEDY };
  }
  if (late.length > 0) return { check, state: 'problem', text: 'a scheduled revocation is overdue', remedy: REMEDY };
  if (unlisted.length > 0) return { check, state: 'warning', text: 'a revocation is on no list yet', remedy: REMEDY };
  if (old > 0) {
    const text = `${old} of ${heads.length} lists were not made anew for more than a day`;
    return { check, state: 'warning', text, remedy: REMEDY };
  }
  return { check, state: 'ok', text: heads.length === 0 ? 'no lists yet' : `${heads.length} lists are up to date` };
}

/** Of an issuer that has ended nobody needs a list any more, and none is made. */
async function issuersInUse(db: Db, now: number): Promise<(list: CrlRef) => boolean> {
  const issuers = await db.selectFrom('issuer').select(['id', 'certificate']).execute();
  const isOver = ({ certificate }: { certificate: string }) =>
    new X509Certificate(bytesFrom(certificate)).validToDate.getTime() < now;
  const ended = new Set(issuers.filter(isOver).map(({ id }) => id));
  return ({ issuerId }) => !ended.has(issuerId);
}
