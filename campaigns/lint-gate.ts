// Reissues with a real linter as the gate, beside the same reissues without it: how many it passed, and what it costs. zlint,
// where it is installed (ZLINT names it).
import { spawnSync } from 'node:child_process';
import { mapLimit } from '../src/kernel/concurrency.ts';
import { startApp } from '../test/support/app.ts';
import { lintersFile } from '../test/support/linters.ts';
import { body, newOrder, reissue } from '../test/support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../test/support/products.ts';
import type { Campaign } from './campaign.ts';

const ZLINT = process.env.ZLINT ?? 'zlint';
const AT_ONCE = 8;
const ORDERS = 16;

export const lintGateCampaign: Campaign = {
  about: 'N reissues of a product that zlint must pass, beside N without it',
  defaultN: 1000,
  async run(n, print) {
    const version = spawnSync(ZLINT, ['-version'], { encoding: 'utf8' });
    if (version.error) {
      print('zlint: not installed, not asked');
      return [];
    }
    print(`${(version.stdout + version.stderr).trim()}`);
    const plain = { ...OWN_PRODUCT, csr: 'optional' };
    await using app = await startApp({
      RESEAL_PRODUCTS_FILE: productsFile({ ...plain, id: 'plain' }, { ...plain, id: 'linted', requires_lint: true }),
      RESEAL_LINTERS_FILE: lintersFile({
        // A private profile asserts no policy of public TLS (campaigns/linters.ts).
        ...{ name: 'zlint', format: 'zlint', command: [ZLINT, '-'], ignore: PRIVATE_PROFILE },
      }),
    });
    const broken: string[] = [];
    for (const product of ['plain', 'linted']) {
      const orders = await Promise.all(
        Array.from({ length: ORDERS }, (_, index) => newOrder(app, { product, commonName: `n${index}.example.com` })),
      );
      const begun = performance.now();
      const outcomes = new Map<string, number>();
      await mapLimit(
        AT_ONCE,
        Array.from({ length: n }, (_, index) => index),
        async (index) => {
          const place = index % ORDERS;
          const answer = await reissue(app, orders[place]!, body({ common_name: `n${place}.example.com` }));
          const code = `${answer.status} ${answer.body.code}`;
          outcomes.set(code, (outcomes.get(code) ?? 0) + 1);
        },
      );
      const ms = performance.now() - begun;
      const told = [...outcomes].map(([code, count]) => `${count} × ${code}`).join(', ');
      print(`${product}: ${told}; ${(ms / n).toFixed(1)} ms each with ${AT_ONCE} at once`);
      if (outcomes.get('200 success') !== n) broken.push(`${product}: ${told}`);
    }
    const passed = app.app.store.lintResults;
    const refused = await passed.listRefused(5);
    return [...broken, ...refused.map(({ verdict }) => JSON.stringify(verdict))];
  },
};

const PRIVATE_PROFILE = ['e_sub_cert_cert_policy_empty', 'e_sub_cert_certificate_policies_missing'];
