// Checks that the issuers of every purpose can still sign what they signed, and outlive the certificates they will sign.

import { canStillSign, PURPOSES, type PublicIssuer } from '../../domain/certificate/authority.ts';
import { DAY_MS } from '../../kernel/durations.ts';
import type { Diagnostic } from '../../kernel/problem.ts';
import { candidatesAmong, candidatesFor, combinations } from '../ca/issuer-selection.ts';

// A year, plus the weeks that a new authority takes where key ceremonies and audits are required.
const NOTICE_DAYS = 400;
const REMEDY = 'Import a new one: reseal ca import --for PURPOSE chain.pem issuing.key';

export function checkIssuers(issuers: readonly PublicIssuer[], longestDays: number, now: number): Diagnostic {
  const check = 'issuers';
  const all = candidatesAmong(issuers).sort((a, b) => a.notAfter - b.notAfter);
  const [first] = all;
  if (!first) return { check, state: 'ok', text: 'none yet; each is made when it is first needed' };
  const refused = PURPOSES.flatMap((purpose) =>
    combinations((keyType, signHash) => {
      const able = candidatesFor(all, { purpose, keyType, signHash });
      return able.length > 0 && !able.some((one) => canStillSign(one, now));
    }).map(({ keyType, signHash }) => `${keyType}+${signHash} for ${purpose}`),
  );
  if (refused.length > 0) {
    return { check, state: 'problem', text: `no issuer can sign ${refused.join(', ')}`, remedy: REMEDY };
  }
  const notice = Math.max(NOTICE_DAYS, longestDays) * DAY_MS;
  const soon = all.filter(({ notAfter }) => notAfter < now + notice);
  if (soon.length > 0) {
    const list = soon
      .map(
        ({ id, keyType, purposes, notAfter }) =>
          `${keyType} issuer ${id} for ${purposes.join(', ')} on ${dayOf(notAfter)}`,
      )
      .join('; ');
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
