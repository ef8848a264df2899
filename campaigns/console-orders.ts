// The console in an account with N orders, in a real browser: its lists must stay as fast as in a small one, and the page may
// not grow with the list. SQLite; the look-ups themselves are compared on both engines by the campaign `inventory`.
import { join } from 'node:path';
import { sql } from 'kysely';
import { openEngine } from '../src/adapters/store/engine/engine.ts';
import { engineAt } from '../src/adapters/store/store.ts';
import { newUsedFolder, TestApp } from '../test/support/app.ts';
import { launchBrowser, openPage } from '../test/support/browser.ts';
import { settled } from '../test/support/console-journey.ts';
import type { Campaign } from './campaign.ts';
import { fill, VERSIONS } from './inventory.ts';

const PAGES = [
  'orders',
  'orders?q=d7.example.com',
  'orders?status=revoked',
  'certificates',
  'certificates?ends=soon',
  'revocations',
];
const TURNS = 20;
const MOST_MS = 2_000;
const MOST_HEAP_BYTES = 32 * 1024 * 1024;

export const consoleOrders: Campaign = {
  about: 'the console of an account with N orders stays fast, and its pages small',
  defaultN: 100_000,
  async run(n, print) {
    const violations: string[] = [];
    const app = new TestApp(await newUsedFolder());
    await app.start({});
    const key = await app.newKey();
    await app.stop();
    const db = openEngine(engineAt({ kind: 'sqlite', file: join(app.folder, 'reseal.db') }, {}, true), () => {});
    const { id: issuer } = await db.selectFrom('issuer').select('id').limit(1).executeTakeFirstOrThrow();
    await fill(db, [0, n * VERSIONS], { owner: key.accountId, issuer });
    await sql`analyze`.execute(db);
    await db.destroy();
    await app.start({});
    await using _app = app;
    await using stack = new AsyncDisposableStack();
    const browser = await launchBrowser();
    stack.defer(() => browser.close());
    const { page, faults } = await openPage(browser, app.url, {});
    await page.goto(`${app.url}/console/`);
    await page.fill('[name=key_id]', key.keyId);
    await page.fill('[name=secret]', key.authKey);
    await page.click('button.main');
    await page.waitForSelector('.rail nav');
    for (const path of PAGES) {
      const started = performance.now();
      await page.goto(`${app.url}/console/#/${path}`);
      await settled(page);
      const ms = performance.now() - started;
      print(`${path.padEnd(28)} ${ms.toFixed(0)} ms, ${await page.locator('tbody tr').count()} rows`);
      if (ms > MOST_MS) violations.push(`${path} took ${ms.toFixed(0)} ms`);
    }
    const heap = () =>
      page.evaluate(() => (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize);
    await page.goto(`${app.url}/console/#/orders`);
    await settled(page);
    const before = await heap();
    const begun = performance.now();
    for (let turn = 0; turn < TURNS; turn += 1) {
      const first = await page.locator('tbody tr').first().innerText();
      await page.getByRole('link', { name: 'Next page' }).click();
      await page.waitForFunction((text) => {
        const { document } = globalThis as unknown as {
          document: { querySelector(name: string): { innerText: string } | null };
        };
        return (document.querySelector('tbody tr')?.innerText ?? text) !== text;
      }, first);
    }
    print(`a next page takes ${((performance.now() - begun) / TURNS).toFixed(0)} ms`);
    const after = await heap();
    print(`heap of the page: ${(before / 1e6).toFixed(1)} MB, after ${TURNS} pages ${(after / 1e6).toFixed(1)} MB`);
    if (after > MOST_HEAP_BYTES) violations.push(`the page has a heap of ${after} bytes`);
    return [...violations, ...faults];
  },
};
