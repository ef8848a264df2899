// Runs the known-answer tests of SM2 and SM3. If they fail, products that need them are disabled.
import type { Diagnostic } from '../../kernel/problem.ts';
import { sm2Fault } from '../sm2/self-check.ts';

export function checkSm2(fault = sm2Fault()): Diagnostic {
  const check = 'sm2';
  if (fault === null) return { check, state: 'ok', text: 'known-answer tests pass' };
  return {
    check,
    state: 'warning',
    text: `disabled, and products that need it are refused: ${fault}`,
    remedy: 'Use the runtime that comes with Reseal: run npm ci, and start bin/reseal.mjs.',
  };
}
