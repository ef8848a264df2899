// What the log tells of requests and of background work.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { errorLine, type LogLine } from '../../../src/kernel/log.ts';
import { summarized } from '../../../src/kernel/summarized-log.ts';
import { type Answer, startApp } from '../../support/app.ts';
import { startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { newSubscriber, waitFor } from '../../support/deliveries.ts';
import { startDomainApp } from '../../support/domain-app.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

type Event = LogLine['event'];
const linesOf = <E extends Event>(lines: readonly LogLine[], event: E) =>
  lines.filter((line): line is Extract<LogLine, { event: E }> => line.event === event);

/** A line is written when the connection has taken the answer, which may be after the caller has it. */
const lineOf = ({ headers }: Answer) =>
  waitFor('the log line', () =>
    linesOf(app.lines, 'request').find(({ request_id }) => request_id === headers.get('x-request-id')),
  );

rule('ops 21', 'names the order and the certificate that its path or its answer names', async () => {
  const order = await newOrder(app);
  const answer = await reissue(app, order, body());
  const line = await lineOf(answer);
  assert.deepEqual([line.order_id, line.certificate_id], [order.id, answer.body.data.certificate.id]);
  const shown = await lineOf(await app.call('GET', `/openapi/v3/certs/${order.certificateId}`, { key: order.key }));
  assert.deepEqual([shown.order_id, shown.certificate_id], [null, order.certificateId]);
  const placed = await app.call('POST', '/openapi/v3/orders/ssl-dv', {
    key: order.key,
    json: body({ common_name: 'new.example.org' }),
  });
  assert.equal(placed.status, 200, placed.text);
  const { order_id, certificate_id } = await lineOf(placed);
  assert.deepEqual([order_id, certificate_id], [placed.body.data.id, placed.body.data.certificate.id]);
  // Not what merely stands where an id belongs.
  const secret = 'S3cret-Value-0123456789abcdef';
  const strange = await lineOf(await app.call('GET', `/openapi/v3/orders/${secret}`, { key: order.key }));
  assert.equal(strange.order_id, null);
});

rule('ops 21', 'the field that was refused, the key id on 403', async () => {
  const order = await newOrder(app);
  const refused = await lineOf(await reissue(app, order, body({ sign_hash: 'md5' })));
  assert.deepEqual([refused.code, refused.field], ['invalid_parameters', 'certificate.sign_hash']);
  const key = await app.newKey();
  await app.app.access.disableKey(key.keyId);
  const disabled = await lineOf(await app.call('GET', '/openapi/v3/account', { key }));
  assert.deepEqual([disabled.status, disabled.key_id], [403, key.keyId]);
  const wrong = await lineOf(await app.call('GET', '/openapi/v3/account', { key: { ...key, authKey: 'x' } }));
  assert.deepEqual([wrong.status, wrong.key_id], [401, null]);
});

rule('ops 22', 'Whatever the caller sends as `X-Request-Id`, the answer carries one of our own', async () => {
  const table: [sent: string, kept: boolean][] = [
    ['4bf92f3577b34da6a3ce929d0e0e4736', true],
    ['~'.repeat(128), true],
    ['~'.repeat(129), false],
    ['a"b', false],
    ["a'b", false],
    ['a\\b', false],
    ['a b', false],
    ['\u00e9', false],
  ];
  for (const [sent, kept] of table) {
    const answer = await app.call('GET', '/openapi/v3/account', { headers: { 'x-request-id': sent } });
    const { request_id, caller_request_id } = await lineOf(answer);
    assert.equal(caller_request_id, kept ? sent : null, sent);
    assert.match(request_id, /^[0-9a-z]{26}$/);
    assert.notEqual(request_id, sent);
  }
});

rule(
  'ops 23',
  'Each check, issuance, revocation, CRL and callback attempt in the background leaves one log line',
  async () => {
    await using domains = await startDomainApp({
      RESEAL_PRODUCTS_FILE: productsFile({
        ...OWN_PRODUCT,
        revokes_previous_on_reissue: true,
        revocation_grace_hours: 24,
      }),
    });
    const { lines } = domains.app;
    const order = await domains.place([domains.newDomain()], { dcv_method: 'dns' });
    await domains.workerChecks(order);
    const [waits] = linesOf(lines, 'check');
    assert.deepEqual([waits?.order_id, waits?.outcome, waits?.problems], [order.id, 'waits', 'no_record']);
    await domains.publish(order);
    await domains.workerChecks(order);
    const issued = linesOf(lines, 'check').at(-1);
    assert.deepEqual([issued?.outcome, issued?.method, issued?.problems], ['issued', 'dns', '']);
    const [issuance] = linesOf(lines, 'issuance');
    assert.deepEqual([issuance?.certificate_id, issuance?.names], [order.certificateId, 1]);

    // Of a product that revokes what it replaces a day later.
    const own = await newOrder(domains.app, { product: 'own' });
    const json = body({ csr: undefined }, { i_know_will_revoke_last_cert: true });
    assert.equal((await reissue(domains.app, own, json)).status, 200);
    domains.app.advance(25 * 3_600_000);
    const [revocation] = await waitFor('the revocation', () => {
      const found = linesOf(lines, 'revocation');
      return found.length > 0 && found;
    });
    assert.deepEqual([revocation?.certificate_id, revocation?.cause], [own.certificateId, 'previous_replaced']);
    await waitFor('its CRL', () => linesOf(lines, 'crl_published').some(({ changes }) => changes === 1));

    await using world = await startCallbackApp();
    const subscriber = await newSubscriber(world);
    const [attempt] = linesOf(world.app.lines, 'callback_attempt');
    assert.deepEqual([attempt?.order_id, attempt?.outcome, attempt?.number], [subscriber.id, 'delivered', 1]);
  },
);

rule('ops 24', 'A fault that repeats is logged once, and counted in one line a minute later', (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const lines: LogLine[] = [];
  const log = summarized((line) => void lines.push(line));
  const fault = (message: string) => log(errorLine(new TypeError(message), null, 'sweep'));
  const again = () => fault('cannot read x');
  for (let count = 0; count < 1_000; count += 1) again();
  fault('another');
  log({ event: 'stopping', text: 'not a fault' });
  log({ event: 'stopping', text: 'not a fault' });
  assert.deepEqual(
    lines.map(({ event }) => event),
    ['error', 'error', 'stopping', 'stopping'],
  );
  context.mock.timers.tick(60_000);
  const [repeated] = linesOf(lines, 'repeated');
  assert.deepEqual([repeated?.times, repeated?.text, repeated?.of], [999, 'TypeError: cannot read x', 'error']);
  assert.equal(lines.length, 5, 'a fault that did not repeat is not counted');
  again();
  assert.equal(lines.at(-1)?.event, 'error', 'after the time it is logged again');
});
