// An account holder in a real browser: sees what a reissue will do and does it, publishes a record, follows callbacks. The
// browser comes from npm, for Linux on x64.
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { hasBrowser } from '../support/browser.ts';
import { ConsoleJourney, overhang, PAGES, type PageFacts, settled, violations } from '../support/console-journey.ts';
import { csrFor } from '../support/orders.ts';

const options = { skip: hasBrowser ? false : 'the browser of the tests is for Linux on x64' };
let journey: ConsoleJourney;
before(async () => {
  if (hasBrowser) journey = await ConsoleJourney.start();
});
after(async () => {
  await journey?.[Symbol.asyncDispose]();
});

const HOUR_MS = 3_600_000;

test(
  'a reissue that removes a name is seen, consented to, and done, on a key that never leaves the browser',
  options,
  async () => {
    const page = await journey.stranger();
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.postData() ?? ''));
    await journey.signIn(page);
    const id = journey.orderOf('ssl-dv');
    await journey.visit(page, `orders/${id}`);
    await page.getByRole('link', { name: 'Reissue…' }).click();
    const plan = page.getByRole('region', { name: 'What will happen' });
    await plan.getByText('unchanged: 2').waitFor();
    const send = page.getByRole('button', { name: 'Reissue now' });
    assert.equal(await send.isDisabled(), true, 'without a signing request nothing can be sent');

    await page.getByLabel('Further names').fill('');
    await plan.getByText('www.ssl-dv.example.com removed').waitFor();
    await plan.getByText('replaced by another certificate').waitFor();
    const consent = page.getByRole('checkbox', { name: /www\.ssl-dv\.example\.com will be missing/ });
    assert.equal(await consent.isChecked(), false);

    await page.getByRole('button', { name: 'Make a new key' }).click();
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save the private key' }).click(),
    ]);
    const privateKey = createPrivateKey(readFileSync(await saved.path(), 'utf8'));
    await consent.check();
    // What is consented to is what was shown: with other consequences the tick is gone.
    await page.getByLabel('Further names').fill('www.ssl-dv.example.com');
    await plan.getByText('Nothing is revoked.').waitFor();
    await page.getByLabel('Further names').fill('');
    await consent.uncheck();
    assert.equal(await send.isDisabled(), true);
    await consent.check();
    await journey.shot(page, 'reissue-plan-light');
    await page.getByText('The same with curl').click();
    const curl = await page.getByLabel('curl', { exact: true }).innerText();
    assert.match(curl, /"i_know_remove_domain_will_revoke_before_cert": true/);
    assert.equal(curl.includes(journey.key.auth_key), false);
    await send.click();
    await page.getByRole('heading', { name: 'Certificate' }).waitFor();
    await page.getByText('Version 2').waitFor();

    const order = await journey.api('GET', `orders/${id}`);
    const { Certificate: certificate } = await journey.api('GET', `certs/${order.certificate_id}`);
    assert.deepEqual(certificate.dns_names, ['ssl-dv.example.com']);
    const { publicKey } = new X509Certificate(certificate.pem);
    assert.ok(publicKey.equals(createPublicKey(privateKey)), 'the certificate is for the key that was saved');
    assert.equal(
      sent.some((body) => body.includes('PRIVATE KEY')),
      false,
    );
    const real = sent.filter((body) => body.includes('i_know_remove_domain'));
    assert.equal(real.length, 1);
    await page.context().close();
  },
);

test('an order shows its record, and turns issued without a reload once the record is published', options, async () => {
  const page = await journey.signedIn();
  await journey.visit(page, 'orders/new');
  await page.getByLabel('Common name').fill('shop.example.net');
  await page.getByLabel('Certificate signing request').fill(csrFor());
  await page.getByLabel('Your own id (optional)').fill(HOSTILE_ID);
  await page.getByRole('button', { name: 'Place the order' }).click();
  await page.getByRole('heading', { name: 'What it waits for' }).waitFor();
  const id = new URL(page.url()).hash.split('/').at(-1) ?? '';
  const [record] = (await journey.api('GET', `orders/${id}`)).dcv_val;
  await page.getByText(record.auth_val, { exact: true }).waitFor();
  await page.getByText('As commands and zone lines').click();
  await page.getByText(`update add ${record.auth_path}. 300 IN TXT "${record.auth_val}"`).waitFor();
  await journey.publish(record.auth_path, HOSTILE);
  await page.getByRole('button', { name: 'Only look' }).click();
  await page.getByRole('cell', { name: 'Another value' }).first().waitFor();
  await journey.shot(page, 'order-waiting-light');
  assert.deepEqual(await violations(page), []);

  await page.evaluate(() => {
    (globalThis as unknown as { wasHere: boolean }).wasHere = true;
  });
  await journey.publish(record.auth_path, record.auth_val);
  await journey.api('PUT', `orders/${id}/dcv-completed`);
  await page.getByText('Issued', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'With chain (PKCS#7)' }).waitFor();
  assert.equal(await page.evaluate(() => (globalThis as unknown as { wasHere?: boolean }).wasHere), true);
  await page.context().close();
});

test('a callback test that fails in TLS is drawn as such, and one that succeeds as well', options, async () => {
  const page = await journey.signedIn();
  await journey.visit(page, 'callbacks');
  const { port } = new URL(journey.sandbox.receiver.url);
  await page.getByText('Test another address').click();
  await page.getByLabel('Another address (optional)').fill(`https://untrusted.sandbox.test:${port}/`);
  await page.getByRole('button', { name: 'Send a test callback' }).click();
  const broken = page.locator('.waterfall .broken');
  await broken.getByText('failed here').waitFor();
  assert.equal(await broken.locator('.stage').innerText(), 'TLS');
  await page.getByText('The certificate of the receiver is not trusted.', { exact: false }).waitFor();
  assert.equal(await page.locator('.waterfall .skipped').count(), 2);
  await journey.shot(page, 'callback-test-failed-light');
  assert.deepEqual(await violations(page), []);
  await page.getByLabel('Another address (optional)').fill('');
  await page.getByRole('button', { name: 'Send a test callback' }).click();
  await page.getByText('The receiver answered 200.').waitFor();
  assert.equal(await broken.count(), 0);
  assert.equal(await page.locator('.waterfall .bar').count(), 5);
  await page.context().close();
});

test('a callback that was given up is sent again, and seen to arrive', options, async () => {
  const page = await journey.signedIn();
  const { url } = journey.sandbox.receiver;
  const settings = async (address: string) => {
    await journey.visit(page, 'callbacks');
    await page.getByLabel('Address', { exact: true }).fill(address);
    await page.getByLabel('Access key', { exact: true }).fill('of-the-receiver');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText(address, { exact: true }).waitFor();
  };
  await settings(new URL('/status/503', url).href);
  const id = journey.orderOf('ssl-dv-add');
  const name = 'ssl-dv-add.example.com';
  const certificate = { common_name: name, csr: csrFor(), sign_hash: 'sha256' };
  await journey.api('POST', `orders/${id}/reissue`, { certificate });
  await journey.visit(page, `callbacks/deliveries?order_id=${id}`);
  await page.getByRole('cell', { name: 'Given up' }).waitFor();
  await page.getByRole('cell', { name: 'answered 503' }).waitFor();
  await journey.visit(page, 'orders');
  await page.getByText('Callback given up').waitFor();
  await journey.shot(page, 'orders-attention-light');
  await settings(url);
  await journey.visit(page, `callbacks/deliveries?order_id=${id}&state=failed`);
  await page.getByRole('link', { name: 'A certificate was issued' }).click();
  await page.getByText('Every attempt failed.', { exact: false }).waitFor();
  await journey.shot(page, 'delivery-failed-light');
  await page.getByRole('button', { name: 'Send it again' }).click();
  await page.getByText('Received', { exact: true }).waitFor();
  await page.getByText('answered 200').waitFor();
  await page.context().close();
});

test(
  'one of two certificates is kept from its revocation, and a cloud key gets another access code',
  options,
  async () => {
    const page = await journey.signedIn();
    const reissue = { common_name: 'tls-grace.example.com', sign_hash: 'sha256' };
    for (const csr of [csrFor(), csrFor()]) {
      await journey.api('POST', `orders/${journey.orderOf('tls-grace')}/reissue`, {
        ...{ certificate: { ...reissue, csr }, i_know_will_revoke_last_cert: true },
      });
    }
    await journey.visit(page, 'revocations');
    const coming = page.getByRole('region', { name: 'Revocations to come' }).getByRole('listitem');
    await coming.nth(1).waitFor();
    await coming
      .first()
      .getByText(/^2 d 23 h \d+ min$/)
      .waitFor();
    await coming.first().getByRole('button', { name: 'Keep the certificate' }).click();
    await coming.nth(1).waitFor({ state: 'detached' });
    const certificate = { csr_from: 'sign-cloud-csc', sign_hash: 'sha256' };
    const top = { sign_key_pin: 'first-code', sign_key_pin_tip: HOSTILE };
    await journey.api('POST', `orders/${journey.orderOf('document-signing')}/reissue`, { certificate, ...top });
    await journey.visit(page, 'cloud-keys');
    await page.getByText(HOSTILE).waitFor();
    await page.getByText('Change the access code…').click();
    await page.getByLabel('Access code now').fill('first-code');
    await page.getByLabel('New access code').fill('second-code');
    await page.getByRole('button', { name: 'Change the code' }).click();
    await page.getByText('The access code was changed.').waitFor();
    await page.context().close();
  },
);

async function facts(): Promise<PageFacts> {
  const order = journey.orderOf('ssl-dv');
  const { certificates } = await journey.api('GET', 'certs?name=www.ssl-dv.example.com');
  const { deliveries } = await journey.api('GET', 'account/callback/deliveries?state=delivered&limit=1');
  return { order, revoked: certificates[0].id, delivery: deliveries[0].id };
}
const MAX_SCRIPT_BYTES = 150_000;

test('every page is sound in both themes, and on a telephone as on a wall', options, async () => {
  const known = await facts();
  const [light, dark] = [await journey.signedIn(), await journey.signedIn({ colorScheme: 'dark' })];
  for (const [name, pathOf] of Object.entries(PAGES)) {
    for (const [theme, page] of Object.entries({ light, dark })) {
      await journey.visit(page, pathOf(known));
      // The themes differ in colours only.
      assert.deepEqual(
        await violations(page, theme === 'dark' ? ['color-contrast'] : undefined),
        [],
        `${name}, ${theme}`,
      );
      await journey.shot(page, `${name}-${theme}`);
    }
    // Drawing at the size of a wall takes long: one page with columns, one without.
    for (const width of ['order', 'orders'].includes(name) ? [3840, 390] : [390]) {
      await dark.setViewportSize({ width, height: 1000 });
      assert.ok((await overhang(dark)) <= 0, `${name} can be scrolled sideways at ${width} px`);
    }
    await journey.shot(dark, `${name}-390`);
    await dark.setViewportSize({ width: 1280, height: 900 });
  }
  for (const page of [light, dark]) await page.context().close();
});

test('a page loads less than 150 KB of script, first to last byte', options, async (context) => {
  const known = await facts();
  for (const name of ['orders', 'order', 'reissue', 'delivery']) {
    const page = await journey.signedIn();
    const scripts: Promise<Buffer>[] = [];
    page.on('response', (response) => {
      if (response.request().resourceType() === 'script') scripts.push(response.body());
    });
    await journey.visit(page, PAGES[name]?.(known) ?? '');
    const bytes = (await Promise.all(scripts)).reduce((sum, { length }) => sum + length, 0);
    context.diagnostic(`${name}: ${scripts.length} modules, ${bytes} bytes`);
    assert.ok(bytes > 20_000 && bytes < MAX_SCRIPT_BYTES, `${name}: ${bytes} bytes`);
    await page.context().close();
  }
});

/** Markup, an attribute's end, and a script, in one. */
const HOSTILE = `"'><img src=x onerror=alert(1)><script>alert(2)</script>`;
/** Without blanks, for the account's own name of an order. */
const HOSTILE_ID = `'"><img/src=x/onerror=alert(1)>`;
/** Fields whose text an account, a receiver, or a DNS server chooses. */
const CHOSEN =
  /"(common_name|alternative_order_id|organization|name|hint|message|excerpt|domain|domain_unicode|auth_val|auth_path|url|body|network|subject)":"((?:[^"\\]|\\.)*)"/g;

test(
  'text that others choose is shown as text on every page, in Chinese and on a telephone, too',
  options,
  async () => {
    const page = await journey.signedIn({ viewport: { width: 390, height: 844 }, locale: 'zh-CN' });
    const dialogs: string[] = [];
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message());
      dialog.dismiss();
    });
    // Every such field at once, in answers of the real service.
    await page.route('**/console/api/**', async (route) => {
      if (route.request().method() !== 'GET' || route.request().url().endsWith('/events'))
        return await route.continue();
      const response = await route.fetch();
      const text = (await response.text()).replace(
        CHOSEN,
        (_, name, value) => `"${name}":${JSON.stringify(value + HOSTILE)}`,
      );
      await route.fulfill({ response, body: text });
    });
    const known = await facts();
    const shownOn: string[] = [];
    for (const [name, pathOf] of Object.entries(PAGES)) {
      await journey.visit(page, pathOf(known));
      assert.equal(await page.locator('img, main script, main iframe').count(), 0, name);
      assert.equal(await page.locator('html').getAttribute('lang'), 'zh-CN');
      assert.match(await page.getByRole('navigation', { name: '页面' }).innerText(), /订单[\s\S]*证书[\s\S]*账户/);
      assert.match(await page.locator('main').innerText(), /[一-龥]{4}/, name);
      assert.ok((await overhang(page)) <= 0, `${name} can be scrolled sideways by what others write`);
      if ((await page.locator('main').innerText()).includes('<img src=x')) shownOn.push(name);
    }
    assert.deepEqual(dialogs, []);
    assert.ok(shownOn.length >= 10, shownOn.join());
    await page.context().close();
  },
);

test('a private key that is given in place of a signing request is not sent', options, async () => {
  const page = await journey.signedIn();
  const sent: string[] = [];
  page.on('request', (request) => sent.push(request.postData() ?? ''));
  await journey.visit(page, `orders/${journey.orderOf('ssl-dv')}/reissue`);
  const pem = '-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----\n';
  const file = { name: 'example.key.pem', mimeType: 'application/x-pem-file', buffer: Buffer.from(pem) };
  await page.locator('input[type=file]').setInputFiles(file);
  await page.getByText('This is a private key.').waitFor();
  const csr = page.getByLabel('Certificate signing request');
  await csr.fill(pem.replaceAll('PRIVATE', 'RSA PRIVATE'));
  assert.equal(await csr.inputValue(), '');
  // The next dry run, after the time in which a further one could have begun.
  const planned = page.waitForResponse(/dry_run=true/);
  await csr.fill('not a signing request');
  await planned;
  assert.equal(await page.getByText('This is a private key.').count(), 0);
  assert.equal(
    sent.some((body) => body.includes('PRIVATE KEY')),
    false,
  );
  await page.context().close();
});

test(
  'signing out ends the session here, expiry ends it everywhere, and a link leads back to its page',
  options,
  async () => {
    const here = await journey.signedIn();
    await journey.visit(here, 'certificates');
    journey.advance(13 * HOUR_MS);
    await here.getByRole('link', { name: 'Orders' }).click();
    await here.getByText('Your session has ended. Sign in again to go on.').waitFor();
    await journey.shot(here, 'sign-in-light');
    assert.deepEqual(await violations(here), []);
    await journey.signIn(here);
    await settled(here);
    await here.getByRole('button', { name: 'Sign out' }).click();
    await here.getByRole('heading', { name: 'Sign in to Reseal' }).waitFor();
    await here.reload();
    await here.getByRole('heading', { name: 'Sign in to Reseal' }).waitFor();
    assert.equal((await here.context().cookies()).length, 0);
    await here.context().close();
  },
);

test('no page had an error of its own, a violation of its policy, or a request to another place', options, () => {
  journey.assertSound();
});
