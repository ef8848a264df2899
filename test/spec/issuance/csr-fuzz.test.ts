// A short run of the csr-fuzz campaign: enough mutations to notice that the campaign, or what it checks, is broken. The
// full one is `npm run campaign -- csr-fuzz`.
import assert from 'node:assert/strict';
import { csrFuzz } from '../../../campaigns/csr-fuzz.ts';
import { rule } from '../../support/contract.ts';

const REQUESTS = 3000;

rule(
  'errors invalid_csr',
  'the CSR cannot be read, its signature does not verify, or its key is not acceptable',
  async (context) => {
    const broken = await csrFuzz.run(REQUESTS, (line) => context.diagnostic(line));
    assert.deepEqual(broken, []);
  },
);
