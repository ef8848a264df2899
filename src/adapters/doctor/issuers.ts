// Is there an issuer for everything we offer, and does it live as long as the certificates it will be asked for?

import { canStillSign, type PublicIssuer } from '../../domain/certificate/authority.ts';
import { DAY_MS } from '../../kernel/durations.ts';
import type { Finding } from '../../kernel/problem.ts';
import { candidatesAmong, candidatesFor, servedBy } from '../ca/issuer-selection.ts';

// A year, and the weeks that a new authority takes where ceremonies and auditors are part of it.
const NOTICE_DAYS = 400;
const REMEDY = 'Bring a new one: reseal ca import --certificate issuing.pem --key issuing.key --root root.pem';

export function checkIssuers(issuers: readonly PublicIssuer[], longestDays: number, now: number): Finding {
  const check = 'issuers';
  const all = candidatesAmong(issuers).sort((a, b) => a.notAfter - b.notAfter);
  const [first] = all;
  if (!first) return { check, state: 'ok', text: 'none yet; the first start makes them' };
  const living = all.filter((one) => canStillSign(one, now));
  const refused = servedBy(all).filter(
    ({ keyType, signHash }) => candidatesFor(living, keyType, signHash).length === 0,
  );
  if (refused.length > 0) {
    const list = refused.map(({ keyType, signHash }) => `${keyType}+${signHash}`).join(', ');
    return { check, state: 'problem', text: `none is left that can sign ${list}`, remedy: REMEDY };
  }
  const notice = Math.max(NOTICE_DAYS, longestDays) * DAY_MS;
  const soon = all.filter(({ notAfter }) => notAfter < now + notice);
  if (soon.length > 0) {
    const list = soon.map(({ id, keyType, notAfter }) => `${keyType} issuer ${id} on ${dayOf(notAfter)}`).join(', ');
    return { check, state: 'warning', text: `near the end, and with it what it signs: ${list}`, remedy: REMEDY };
  }
  return { check, state: 'ok', text: `${all.length} can sign; the first to end does so on ${dayOf(first.notAfter)}` };
}

const dayOf = (moment: number): string => new Date(moment).toISOString().slice(0, 10);
