// Does this runtime compute SM2 and SM3 as the standard says? If it does not, products that need them are switched off.
import type { Finding } from '../../kernel/problem.ts';
import { sm2Fault } from '../sm2/self-check.ts';

export function checkSm2(fault = sm2Fault()): Finding {
  const check = 'sm2';
  if (fault === null) return { check, state: 'ok', text: 'known answers hold' };
  return {
    check,
    state: 'warning',
    text: `switched off, and products that need it are refused: ${fault}`,
    remedy: 'Use the runtime that comes with Reseal: run npm ci, and start bin/reseal.mjs.',
  };
}
