// The reference page in a real browser: read, search, sign in, fill in, send. Screenshots go to test-output/screenshots.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { startApp, type TestApp } from '../support/app.ts';
import { hasBrowser, launchBrowser, openPage, type Watched } from '../support/browser.ts';
import { rule } from '../support/contract.ts';
import { newOrder, type PlacedOrder } from '../support/orders.ts';

const SCREENSHOTS = new URL('../../test-output/screenshots/', import.meta.url).pathname;
const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const HOSTILE = '<img/src=x/onerror=document.title="owned">';

let app: TestApp;
let browser: Browser;
let order: PlacedOrder;
let watched: Watched;
let page: Page;

before(async () => {
  if (!hasBrowser) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  app = await startApp();
  const key = await app.newKey({ name: HOSTILE });
  await newOrder(app, { product: 'document-signing', commonName: HOSTILE }, key);
  order = await newOrder(app, { commonName: 'shop.example.com', dnsNames: ['www.shop.example.com'] }, key);
  browser = await launchBrowser();
  watched = await openPage(browser, app.url, { viewport: { width: 1280, height: 1000 } });
  page = watched.page;
});

after(async () => {
  await browser?.close();
  await app?.stop();
});

const options = { skip: hasBrowser ? false : 'the browser of the tests is for Linux on x64' } as const;
const open = (hash: string) => page.goto(`${app.url}/docs#${hash}`);
const shot = (name: string) => page.screenshot({ path: join(SCREENSHOTS, `${name}.jpg`), type: 'jpeg', quality: 70 });

/** What axe-core finds, as text. Evaluated from outside: the policy of the page rightly refuses to load it. */
async function violations(): Promise<string[]> {
  await page.evaluate(AXE);
  return await page.evaluate<string[]>(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`,
  );
}

const isWider = () =>
  page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth');
const bodyField = () => page.getByLabel('Body, JSON');
const button = (name: string) => page.getByRole('button', { name, exact: true });
const certificates = async () =>
  (await app.call('GET', '/openapi/v3/certs', { key: order.key })).body.data.certificates;

rule(
  'console 100',
  'loads at most 150 KB of script',
  async (context) => {
    await open('');
    await page.getByRole('heading', { name: 'Reseal API reference' }).waitFor();
    const scripts = await page.evaluate<number[]>(
      `performance.getEntriesByType('resource').filter(({ name }) => /\\.[jt]s$/.test(name)).map((one) => one.decodedBodySize)`,
    );
    const bytes = scripts.reduce((sum, size) => sum + size, 0);
    context.diagnostic(`${bytes} bytes of script`);
    assert.ok(bytes > 50_000 && bytes <= 150_000, `${bytes} bytes`);
    await shot('reference-overview');
  },
  options,
);

rule(
  'console 96',
  '`revoke` finds revocations',
  async () => {
    const search = page.getByLabel('Search', { exact: true }).first();
    const found = page.getByRole('navigation', { name: 'Search' });
    await search.fill('revoke');
    for (const words of [
      'Revoke a certificate now',
      'Cancel a scheduled revocation',
      'revocation_state_conflict',
      'revoked_at',
    ]) {
      await found.getByText(words, { exact: false }).first().waitFor();
    }
    await shot('reference-search');
    await search.fill('order:expiring');
    await found.getByText('order:expiring').first().waitFor();
    await search.fill('吊销');
    await found.getByText('Revoke a certificate now').waitFor();
    // A code leads to its meaning and remedy.
    await search.fill('too fast');
    await found.getByText('request_too_fast').click();
    const row = page.locator('tr.named');
    assert.match((await row.textContent()) ?? '', /request_too_fast429Too many requests\. Wait a little/);
    await search.fill('no such thing at all');
    await page.getByText('Nothing found').waitFor();
    await search.fill('');
  },
  options,
);

rule(
  'console 92',
  "fills in ids, names and the CSR from the account's own orders",
  async () => {
    await open('post-orders-id-reissue');
    const command = page.getByLabel('Command', { exact: true });
    assert.match((await command.textContent()) ?? '', /orders\/ORDER_ID\/reissue\?dry_run=true'/);
    await page.getByText('Sign in to send this request').click();
    await page.getByLabel('Key id').fill(order.key.keyId);
    await page.getByLabel('Secret').fill(order.key.authKey);
    await button('Sign in').click();
    await page.getByLabel('From your account').selectOption(order.id);
    await command.filter({ hasText: '"shop.example.com"' }).waitFor();
    const { csr } = (await app.call('GET', `/openapi/v3/orders/${order.id}`, { key: order.key })).body.data.certificate;
    assert.deepEqual(JSON.parse(await bodyField().inputValue()), {
      certificate: { csr, common_name: 'shop.example.com', dns_names: ['www.shop.example.com'], sign_hash: 'sha256' },
    });
    assert.ok((await command.textContent())?.includes(`/openapi/v3/orders/${order.id}/reissue`));
  },
  options,
);

rule(
  'console 93',
  'it is ticked at first, and offered in the question',
  async () => {
    const before = (await certificates()).length;
    await page.getByLabel('Dry run:').uncheck();
    await button('Send').click();
    await page.getByText('It issues a certificate.').waitFor();
    await shot('reference-question');
    await button('Dry run first').click();
    await page.locator('.answer pre', { hasText: '"missing_consents"' }).waitFor();
    assert.equal((await certificates()).length, before);
    await shot('reference-dry-run');

    await page.getByLabel('Dry run:').uncheck();
    await button('Send').click();
    // This very request was rehearsed.
    await button('Yes, send it').waitFor();
    assert.equal(await button('Dry run first').count(), 0);
    await button('Do not send').click();
    assert.equal((await certificates()).length, before);
  },
  options,
);

rule(
  'console 91',
  'shows the command that sends the same request with a key',
  async () => {
    const sent = page.waitForRequest((request) => request.method() === 'POST');
    await button('Send').click();
    await button('Yes, send it').click();
    const request = await sent;
    const command = (await page.getByLabel('Command', { exact: true }).textContent()) ?? '';
    assert.equal(new URL(request.url()).pathname, `/console/api/account/orders/${order.id}/reissue`);
    assert.equal(request.headers()['x-cc-auth-key'], undefined);
    assert.ok(command.includes(request.postData()!));
    const printed = await page.locator('.answer pre', { hasText: /"certificate": \{/ }).textContent();
    const after = await certificates();
    assert.ok(
      after.some(({ id }: { id: string }) => printed?.includes(id)),
      printed ?? '',
    );

    // Pasted with the secret of the key, the command does the same again.
    const { stdout } = await promisify(execFile)('sh', ['-c', command], {
      env: { PATH: process.env.PATH, AUTH_KEY: order.key.authKey },
    });
    assert.equal(JSON.parse(stdout).code, 'success', stdout);
  },
  options,
);

rule(
  'console 94',
  'from an error a link leads to its code',
  async () => {
    await page.getByLabel('id', { exact: true }).fill('nothing');
    await button('Send').click();
    await button('Yes, send it').click();
    const answer = page.locator('.answer');
    await answer.getByText('HTTP 404').waitFor();
    assert.match((await answer.textContent()) ?? '', /"code": "order_not_found".*x-request-id[0-9a-z]{26}/s);
    await shot('reference-error');
    await answer.getByText('What to do about order_not_found').click();
    await page.locator('tr.named').getByText('GET /openapi/v3/orders lists them').waitFor();
  },
  options,
);

rule(
  'console 98',
  'as text, whatever they contain',
  async () => {
    await open('get-orders-id');
    const own = page.getByLabel('From your account');
    await own.locator('option', { hasText: HOSTILE }).waitFor({ state: 'attached' });
    await page.locator('.rail').getByText(HOSTILE).waitFor();
    await own.selectOption({ label: `${HOSTILE} · issued` });
    await button('Send').click();
    await page.locator('.answer pre', { hasText: 'onerror' }).waitFor();
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.title(), 'Show an order · Reseal');
    await open('get-orders');
    await page.getByLabel('name_suffix').waitFor();
    await shot('reference-list');
  },
  options,
);

rule(
  'console 99',
  'no sideways scrolling at a width of 390 px',
  async () => {
    await page.setViewportSize({ width: 390, height: 1600 });
    for (const [name, section, words] of [
      ['overview', '', 'Reseal API reference'],
      ['operation', 'post-orders-id-reissue', 'Reissue the certificate of an order'],
      ['errors', 'errors', 'Error codes'],
    ] as const) {
      await open(section);
      await page.getByRole('heading', { level: 1, name: words }).waitFor();
      assert.equal(await isWider(), false, name);
      await shot(`reference-390-${name}`);
    }
    await page.setViewportSize({ width: 1280, height: 1000 });
  },
  options,
);

test('it is accessible in both themes, speaks Chinese, and has made no fault on the way', options, async () => {
  for (const theme of ['Dark', 'Light']) {
    await button(theme).click();
    for (const section of ['', 'post-orders-id-reissue', 'errors']) {
      await open(section);
      await page
        .locator(section === '' ? '#authentication' : 'table')
        .first()
        .waitFor();
      assert.deepEqual(await violations(), [], `${theme} #${section}`);
      await shot(`reference-${theme.toLowerCase()}-${section || 'overview'}`);
    }
  }
  await open('post-orders-id-reissue');
  await button('中文').click();
  await page.getByRole('button', { name: '发送试运行' }).waitFor();
  assert.equal(await page.locator('html').getAttribute('lang'), 'zh-CN');
  await page.getByText('请求过于频繁').first().waitFor();
  await shot('reference-chinese');
  await page.getByRole('button', { name: '退出' }).click();
  await page.getByText('登录后发送此请求').waitFor();

  await page.goto(app.url);
  await page.getByRole('link', { name: 'API reference' }).waitFor();
  assert.deepEqual(await violations(), []);
  await shot('welcome');
  assert.deepEqual(
    watched.faults.filter((fault) => !/status of 404/.test(fault)),
    [],
  );
});
