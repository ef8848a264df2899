// A short run of the ocsp-fuzz campaign, enough to notice that the campaign or the responder is broken. The full one is
// `npm run campaign -- ocsp-fuzz`.
import assert from 'node:assert/strict';
import { ocspFuzz } from '../../../campaigns/ocsp-fuzz.ts';
import { rule } from '../../support/contract.ts';

const REQUESTS = 1_000;

rule('revocation 9', 'never says good for a serial number that the issuer did not issue', async (context) => {
  assert.deepEqual(await ocspFuzz.run(REQUESTS, (line) => context.diagnostic(line)), []);
});
