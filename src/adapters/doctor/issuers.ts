// Checks that an active issuer exists for every key type and hash, and outlives the certificates it will sign.

import { canStillSign, type PublicIssuer } from '../../domain/certificate/authority.ts';
import { DAY_MS } from '../../kernel/durations.ts';
import type { Diagnostic } from '../../kernel/problem.ts';
import { candidatesAmong, candidatesFor, servedBy } from '../ca/issuer-selection.ts';

// A year, plus the weeks that a new authority takes where key ceremonies and audits are required.
const NOTICE_DAYS = 400;
const REMEDY = 'Import a new one: reseal ca import --certificate issuing.pem --key issuing.key --root root.pem';

export function checkIssuers(issuers: readonly PublicIssuer[], longestDays: number, now: number): Diagnostic {
  const check = 'issuers';
  const all = candidatesAmong(issuers).sort((a, b) => a.notAfter - b.notAfter);
  const [first] = all;
  if (!first) return { check, state: 'ok', text: 'none yet; the first start creates them' };
  const active = all.filter((one) => canStillSign(one, now));
  const refused = servedBy(all).filter(
    ({ keyType, signHash }) => candidatesFor(active, keyType, signHash).length === 0,
  );
  if (refused.length > 0) {
    const list = refused.map(({ keyType, signHash }) => `${keyType}+${signHash}`).join(', ');
    return { check, state: 'problem', text: `no issuer can sign ${list}`, remedy: REMEDY };
  }
  const notice = Math.max(NOTICE_DAYS, longestDays) * DAY_MS;
  const soon = all.filter(({ notAfter }) => notAfter < now + notice);
  if (soon.length > 0) {
    const list = soon.map(({ id, keyType, notAfter }) => `${keyType} issuer ${id} on ${dayOf(notAfter)}`).join(', ');
    return {
      check,
      state: 'warning',
      text: `expiring, which shortens the certificates it signs: ${list}`,
      remedy: REMEDY,
    };
  }
  return { check, state: 'ok', text: `${all.length} can sign; the first expires on ${dayOf(first.notAfter)}` };
}

const dayOf = (moment: number): string => new Date(moment).toISOString().slice(0, 10);
