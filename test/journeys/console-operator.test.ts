// The operators' console in a real browser: sign in by a link, look at every page, create an account whose key works.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { hasBrowser, launchBrowser, openPage, type Watched } from '../support/browser.ts';
import { waitFor } from '../support/deliveries.ts';
import { startDomainApp } from '../support/domain-app.ts';
import { newOrder } from '../support/orders.ts';
import { requireAccessible, requireNoSidewaysScroll, screenshot } from '../support/page-checks.ts';

/** Would run in a page that took it for markup. */
const EVIL = '<img src=x onerror="window.evil=1">';
const MINUTE = 60_000;

const options = { skip: hasBrowser ? false : 'the browser of the tests is for Linux on x64' };
const world = hasBrowser ? await startDomainApp() : undefined;
const browser = hasBrowser ? await launchBrowser() : undefined;
after(async () => {
  await browser?.close();
  await world?.[Symbol.asyncDispose]();
});

/** An account with strings that others control everywhere: in its name, a person's name, DNS, a receiver's answer, a reason. */
async function seed({ app, dns, place, complete, entries }: NonNullable<typeof world>) {
  const key = await app.newKey({ name: `Evil ${EVIL}` });
  const settings = { url: 'https://receiver.invalid/hook', access_key: 'the-access-key' };
  assert.equal((await app.call('PUT', '/openapi/v3/account/callback', { key, json: settings })).status, 200);
  const issued = await newOrder(app, { product: 'document-signing', commonName: EVIL }, key);
  const waiting = await place(['waits.example.com'], {}, { key });
  const [entry] = await entries(waiting);
  dns.set(entry?.auth_path ?? '', 'TXT', [EVIL]);
  await complete(waiting);
  await waitFor('a callback is attempted', async () => {
    const { deliveries } = await app.callbacks.deliveries.list(key.accountId, {}, { limit: 1 });
    return deliveries[0]?.attempted.length;
  });
  // So long that it needs attention.
  app.advance(25 * 60 * MINUTE);
  // No excerpt is kept of a receiver on loopback, and eight attempts take long.
  const db = new DatabaseSync(join(app.folder, 'reseal.db'));
  db.exec('pragma busy_timeout = 5000');
  db.prepare('update delivery_attempt set excerpt = ?').run(EVIL);
  const lane = 'update callback_lane set failures = 9, trips = 2, ailing_since = ?, closed_until = ?, due_at = ?';
  db.prepare(lane).run(app.now() - 30 * MINUTE, app.now() + 20 * MINUTE, app.now() + 20 * MINUTE);
  db.close();
  await app.app.access.suspendAccount((await app.newKey({ name: '证书团队' })).accountId, EVIL);
  await app.app.sampleMetrics();
  for (let count = 0; count < 40; count += 1) {
    if (count % 7 === 0) await newOrder(app, { commonName: `host${count}.example.com` });
    if (count % 5 === 0) await app.call('GET', `/openapi/v3/orders/none`, { key });
    await app.call('GET', '/openapi/v3/orders', { key });
    app.advance(15_000);
    await app.app.sampleMetrics();
  }
  return { key, issued, waiting };
}

async function newLink(app: NonNullable<typeof world>['app'], name: string): Promise<string> {
  app.advance(3_000);
  const { token } = await app.app.operators.makeLink(name);
  return `${app.url}/console/#login=${token.reveal()}`;
}

const title = (page: Page): Promise<string | null> => page.locator('h1').textContent();
const shows = (page: Page, text: string) => page.getByText(text, { exact: false }).first().waitFor();

test('an operator signs in by a link, once, and looks at every page', options, async () => {
  assert.ok(world && browser);
  const { app } = world;
  const { key, issued, waiting } = await seed(world);
  await app.app.operators.create('alice', 'act');
  const link = await newLink(app, 'alice');
  const { page, faults } = await openPage(browser, app.url, {
    colorScheme: 'light',
    viewport: { width: 1280, height: 800 },
  });
  await page.goto(link);
  await shows(page, 'Needs attention');
  assert.ok(!page.url().includes('login='), 'the token stays in the address');

  const pages: readonly (readonly [string, string, string])[] = [
    // Name, address, a text that is there once the page is.
    ['overview', 'overview', 'Orders that wait for validation'],
    ['accounts', 'accounts', `Evil ${EVIL}`],
    ['account', `accounts/${key.accountId}`, key.keyId],
    ['authority', 'authority', 'Issuing authorities'],
    ['waiting', 'waiting', 'waits.example.com'],
    ['lanes', 'lanes', 'closed'],
    ['lane', `lanes/${key.accountId}`, 'Attempts'],
    ['audit', 'audit', 'account:suspended'],
    ['find', `find?text=${encodeURIComponent('waits.example.com')}`, 'Found as'],
    ['story', `story/${issued.id}`, 'signed'],
    ['story-waiting', `story/${waiting.id}`, 'Next check'],
    ['doctor', 'doctor', 'Examined'],
    ['people', 'people', 'alice'],
  ];
  for (const [name, address, text] of pages) {
    await page.goto(`${app.url}/console/#/${address}`);
    await shows(page, text);
    await requireAccessible(page, name);
    await screenshot(page, `operator-${name}-light`);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.reload();
  for (const [name, address, text] of pages) {
    await page.goto(`${app.url}/console/#/${address}`);
    await shows(page, text);
    await requireNoSidewaysScroll(page, name);
    await screenshot(page, `operator-${name}-dark-390`);
  }
  assert.equal(await page.evaluate('window.evil'), undefined);
  assert.deepEqual(faults, []);

  await page.getByRole('button', { name: 'Sign out' }).click();
  await shows(page, 'Sign in to Reseal');
  const second = await openPage(browser, app.url);
  await second.page.goto(link);
  await shows(second.page, 'This link was used');
  assert.equal(await title(second.page), 'Sign in to Reseal');
});

/** A browser of its own, signed in. */
async function signedIn(name: string, role: 'view' | 'act', settings: object = {}): Promise<Watched> {
  assert.ok(world && browser);
  await world.app.app.operators.create(name, role);
  const watched = await openPage(browser, world.app.url, settings);
  await watched.page.goto(await newLink(world.app, name));
  await watched.page.locator('nav a[aria-current]').waitFor();
  return watched;
}

test('a link that is pasted into an open console signs in, and leaves the address', options, async () => {
  assert.ok(world && browser);
  const { app } = world;
  await app.app.operators.create('dora', 'view');
  const { page, faults } = await openPage(browser, app.url, {});
  await page.goto(`${app.url}/console/`);
  await page.locator('[name=key_id]').waitFor();
  // The same document: only the fragment changes.
  await page.goto(await newLink(app, 'dora'));
  await shows(page, 'Needs attention');
  assert.ok(!page.url().includes('login='), 'the token stays in the address');
  assert.deepEqual(faults, []);
  await page.context().close();
});

test('one whose key was disabled meanwhile can sign in with another', options, async () => {
  assert.ok(world && browser);
  const { app } = world;
  const [first, second] = [await app.newKey(), await app.newKey()];
  const { page } = await openPage(browser, app.url, {});
  const signIn = async ({ keyId, authKey }: typeof first) => {
    app.advance(3_000);
    await page.locator('[name=key_id]').fill(keyId);
    await page.locator('[name=secret]').fill(authKey);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  };
  await page.goto(`${app.url}/console/`);
  await signIn(first);
  await app.app.access.disableKey(first.keyId);
  await page.reload();
  await signIn(second);
  await shows(page, second.keyId);
  await app.app.access.disableKey(second.keyId);
  // A notice may have made the page read before.
  await page.goto(`${app.url}/console/#/certificates`);
  await shows(page, 'Your session has ended');
  await page.context().close();
});

test('an operator creates an account and a key, which then works over HTTP', options, async () => {
  assert.ok(world);
  const { app } = world;
  const { page, faults } = await signedIn('bob', 'act');
  await page.getByRole('link', { name: 'Accounts' }).click();
  // With the keyboard alone.
  await page.getByLabel('Name', { exact: true }).focus();
  await page.keyboard.type('Acme Ltd');
  await page.keyboard.press('Enter');
  await shows(page, 'The account has no keys yet');
  assert.equal(await title(page), 'Acme Ltd');
  await page.getByRole('button', { name: 'Create the key' }).click();
  const note = page.locator('.secret');
  const [keyId = '', authKey = ''] = await note.locator('code').allTextContents();
  await requireAccessible(page, 'secret');
  await screenshot(page, 'operator-secret');
  const accountId = page.url().split('/').at(-1) ?? '';
  const key = { accountId, keyId, authKey };
  assert.equal((await app.call('GET', '/openapi/v3/orders', { key })).status, 200);

  await page.getByRole('link', { name: 'Audit', exact: true }).click();
  await shows(page, 'key:created');
  await shows(page, 'operator:bob');
  await page.goBack();
  await shows(page, keyId);
  assert.ok(!(await page.content()).includes(authKey), 'the secret is still in the page');

  await page.getByRole('button', { name: /^Rotate/ }).click();
  await page.getByRole('button', { name: 'Create the successor' }).click();
  await note.waitFor();
  const [, successor = ''] = await note.locator('code').allTextContents();
  assert.notEqual(successor, authKey);
  await page.getByRole('button', { name: 'I have kept it' }).click();
  await note.waitFor({ state: 'detached' });
  await page
    .getByRole('button', { name: /^Disable/ })
    .first()
    .click();
  await page.getByRole('button', { name: 'Disable the key' }).click();
  await shows(page, 'disabled');
  assert.equal((await app.call('GET', '/openapi/v3/orders', { key })).status, 403);
  assert.deepEqual(faults, []);
});

test(
  'an operator who may only look is offered no act, and what is refused is said in the chosen language',
  options,
  async () => {
    assert.ok(world);
    const { app } = world;
    const { page, faults } = await signedIn('carol', 'view', { locale: 'zh-CN' });
    const { accountId } = await app.newKey({ name: 'Looked at' });
    await page.goto(`${app.url}/console/#/accounts/${accountId}`);
    await shows(page, '您只能查看');
    assert.deepEqual(await page.locator('main button:not(.small)').allTextContents(), []);
    assert.deepEqual(await page.locator('main form').count(), 0);
    await requireAccessible(page, 'zh');
    assert.deepEqual(faults, []);
    const answer = (await page.evaluate(`fetch('api/operator/accounts/${accountId}/suspend', {
    method: 'POST', body: '{}', headers: { 'content-type': 'application/json', 'accept-language': 'zh-CN' },
  }).then(async (response) => [response.status, (await response.json()).message])`)) as [number, string];
    assert.equal(answer[0], 403);
    assert.match(answer[1], /\p{Script=Han}/u);
    // Unknown accounts and orders are answered in the service's own words, with a way to try again.
    await page.goto(`${app.url}/console/#/story/none`);
    await page.getByRole('alert').waitFor();
    await page.getByRole('button', { name: '重试' }).waitFor();
  },
);
