// Support: from only a request id, and from only a domain name, one command tells what happened; the audit log is searched
// by each of its options.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { byOperator } from '../../src/usecases/access/audit.ts';
import { callbackIn, startCallbackApp } from '../support/callback-app.ts';
import { answerWith, deliveryOf, newSubscriber, routeByPath } from '../support/deliveries.ts';
import { reseal } from '../support/in-process.ts';
import { body, certificate, newOrder, reissue } from '../support/orders.ts';

const world = await startCallbackApp();
after(() => world[Symbol.asyncDispose]());
const { app } = world;
const on = routeByPath(world);
const settings = { RESEAL_DATA_DIR: app.folder };
const USER = `cli:${userInfo().username}`;

async function json(...args: string[]) {
  const { code, out, err } = await reseal([...args, '--json'], settings);
  return { code, ...JSON.parse(out || err) };
}
interface Event {
  readonly event: string;
  readonly actor: string | null;
  readonly request_id: string | null;
  readonly details: Record<string, unknown>;
}
const eventsOf = ({ stories }: { stories: { events: Event[] }[] }) => stories.flatMap(({ events }) => events);

test('from a request id, one command tells request, decision, certificate and deliveries', async () => {
  on('/down', answerWith(503));
  const order = await newSubscriber(world, {}, '/down');
  const answer = await reissue(app, order, body());
  const requestId = answer.headers.get('x-request-id') ?? '';
  const certificateId = answer.body.data.certificate.id;
  await deliveryOf(world, order, certificateId, ({ attempts }) => attempts.length > 0);
  await app.issuance.revoke(byOperator(order.key.accountId), order.certificateId, { reason: undefined });

  const found = await json('find', requestId);
  assert.equal(found.code, 0);
  assert.deepEqual([found.request[0].action, found.request[0].actor], ['order:reissued', order.key.keyId]);
  assert.deepEqual([found.stories.length, found.stories[0].order.id], [1, order.id]);
  const events = eventsOf(found);
  const asked = events.find(({ request_id }) => request_id === requestId);
  assert.deepEqual([asked?.event, asked?.details.certificate_id], ['order:reissued', certificateId]);
  const signed = events.find(({ event, details }) => event === 'signed' && details.certificate_id === certificateId);
  assert.equal(signed?.details.serial, (await certificate(app, order, certificateId)).serial_number);
  const attempt = events.find(
    ({ event, details }) => event === 'callback attempt' && details.certificate_id === certificateId,
  );
  assert.equal(attempt?.details.outcome, 503);
  const revoked = events.find(({ event }) => event === 'certificate:revoked');
  assert.deepEqual([revoked?.actor, revoked?.details.subject], [USER, order.certificateId]);
  assert.ok(
    events.some(({ event, details }) => event === 'listed in CRL' && details.certificate_id === order.certificateId),
  );

  const { out } = await reseal(['find', requestId], settings);
  assert.match(
    out,
    new RegExp(
      `^> \\S+  order:reissued by ${order.key.keyId} request=${requestId} .*certificate_id=${certificateId}`,
      'm',
    ),
  );
  assert.match(out, /^ {2}\S+ {2}callback attempt .*outcome=503/m);
});

test('a refused request is told from the log', async () => {
  const order = await newOrder(app);
  const { status, headers } = await reissue(app, order, body({ sign_hash: 'md5' }));
  assert.equal(status, 400);
  const requestId = headers.get('x-request-id') ?? '';
  const nothing = await reseal(['find', requestId], settings);
  assert.deepEqual([nothing.code, /--log FILE/.test(nothing.out)], [1, true]);
  const file = join(app.folder, 'service.log');
  writeFileSync(file, `not JSON ${requestId}\n${app.output}`);
  const found = await json('find', requestId, '--log', file);
  assert.equal(found.code, 0);
  assert.deepEqual(
    [found.log.length, found.log[0].code, found.log[0].account_id],
    [1, 'invalid_parameters', order.key.accountId],
  );
  assert.equal((await reseal(['find', requestId, '--log', join(app.folder, 'none')], settings)).code, 2);
});

test('names, serial numbers, fingerprints and ids are found in any account', async () => {
  const commonName = 'shop.find-me.com';
  const order = await newOrder(app, { commonName, dnsNames: ['*.wild.find-me.com'] });
  const { serial_number: serial } = await certificate(app, order, order.certificateId);
  const record = await app.app.store.certificates.find(order.key.accountId, order.certificateId);
  const colons = serial.toUpperCase().match(/../g).join(':');
  const table: [given: string, kind: string][] = [
    [commonName, 'name'],
    ['SHOP.find-me.com.', 'name'],
    ['any.wild.find-me.com', 'name'],
    [serial, 'serial'],
    [colons, 'serial'],
    [`0x${serial.toUpperCase()}`, 'serial'],
    [`00${serial}`, 'serial'],
    [record!.publicKey.fingerprint, 'key_fingerprint'],
    [order.id, 'order'],
    [order.certificateId, 'certificate'],
  ];
  for (const [given, kind] of table) {
    const { code, found, stories } = await json('find', given);
    assert.equal(code, 0, given);
    assert.ok(
      found.some((one: { kind: string; order_id: string }) => one.kind === kind && one.order_id === order.id),
      `${given}: ${JSON.stringify(found)}`,
    );
    assert.ok(stories.length > 0, given);
  }
  for (const [given, kind] of [
    [order.key.accountId, 'account'],
    [order.key.keyId, 'key'],
  ] as const) {
    const { code, found } = await json('find', given);
    assert.deepEqual([code, found[0].kind, found[0].account_id], [0, kind, order.key.accountId]);
  }
  for (const given of ['nothing.example', 'ff'.repeat(9), '0'.repeat(26), "'; drop table audit"]) {
    assert.equal((await json('find', given)).code, 1, given);
  }
});

test('a name that a reissue adds or removes is found, also while it waits for validation', async () => {
  const order = await newOrder(app, { commonName: 'first.find-me.com', vouches: true });
  const added = body({ common_name: 'first.find-me.com', dns_names: ['second.find-me.com'] });
  assert.equal((await reissue(app, order, added)).status, 200);
  const { stories } = await json('find', 'second.find-me.com');
  assert.deepEqual(
    stories.map((one: { order: { id: string } }) => one.order.id),
    [order.id],
  );
  assert.equal(stories[0].order.status, 'reissuing');
  assert.ok(stories[0].waiting, 'what it waits for is shown');
});

test('the callback that a delivery id names leads to its order', async () => {
  const order = await newSubscriber(world);
  const { headers } = callbackIn(world.receiver, world.receiver.requests.length - 1);
  const { found, stories } = await json('find', headers['webhook-id'] ?? '');
  assert.deepEqual([found[0].kind, stories[0].order.id], ['delivery', order.id]);
});

test('the audit log is searched by each option', async () => {
  const order = await newOrder(app);
  const { accountId, keyId } = order.key;
  const { headers, body: answered } = await reissue(app, order, body());
  const requestId = headers.get('x-request-id') ?? '';
  const actions = async (...args: string[]) => {
    const { code, audit, error } = await json('audit', ...args);
    assert.equal(code, error ? 1 : 0);
    return error ? error.code : audit.map(({ action }: { action: string }) => action);
  };
  const all = ['order:reissued', 'order:placed', 'name:validated', 'key:created', 'account:created'];
  assert.deepEqual(await actions('--account', accountId), all);
  assert.deepEqual(await actions('--account', accountId, '--limit', '1'), ['order:reissued']);
  assert.deepEqual(await actions('--order', order.id), ['order:reissued', 'order:placed', 'name:validated']);
  assert.deepEqual(await actions('--certificate', answered.data.certificate.id), ['order:reissued']);
  assert.deepEqual(await actions('--request', requestId), ['order:reissued']);
  assert.deepEqual(await actions('--actor', keyId), ['order:reissued']);
  assert.deepEqual(await actions('--account', accountId, '--actor', userInfo().username), [
    'key:created',
    'account:created',
  ]);
  assert.deepEqual(await actions('--request', 'nonsense'), []);
  assert.deepEqual(await actions('--order', 'nothing'), 'order_not_found');
  assert.deepEqual(await actions('--certificate', 'nothing'), 'cert_not_found');
  const noon = new Date(app.now()).toISOString();
  const later = new Date(app.now() + 1_000).toISOString();
  assert.deepEqual(await actions('--account', accountId, '--since', noon, '--until', later), all);
  assert.deepEqual(await actions('--account', accountId, '--until', noon), []);
  assert.deepEqual(await actions('--account', accountId, '--since', later), []);
  const { next_after } = await json('audit', '--account', accountId, '--limit', '2');
  assert.deepEqual(await actions('--account', accountId, '--after', next_after), all.slice(2));
  assert.match((await reseal(['audit', '--since', 'yesterday'], settings)).err, /24h/);
  const { out } = await reseal(['audit', '--order', order.id], settings);
  assert.match(out, new RegExp(`order:reissued +${keyId} +${order.id} +${requestId}`));
});

test('commands on the authority leave an audit row of no account, with the user of the operating system', async () => {
  const file = join(app.folder, 'keys.txt');
  writeFileSync(file, 'ab'.repeat(32));
  assert.equal((await reseal(['blocklist', 'import', file], settings)).code, 0);
  const { audit } = await json('audit', '--since', '24h', '--actor', userInfo().username);
  const [row] = audit.filter(({ action }: { action: string }) => action === 'blocklist:imported');
  assert.deepEqual([row.account_id, row.actor, row.details], [null, USER, { keys: 1 }]);
  const { found } = await json('find', 'ab'.repeat(32));
  assert.deepEqual(
    found.map(({ kind }: { kind: string }) => kind),
    ['blocked_key'],
  );
});
