// A customer's journey through the typed client, which the compiler checks with the rest: place, prove, certificate, reissue
// with consent, callback test, deliveries, revoke. No cast, no suppression, nothing of unknown type. Then what a client is
// for: answers that were lost, pages, callbacks, and the package as it is published.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import {
  type Answer,
  createClient,
  type OperationId,
  ResealError,
  type Schemas,
  verifyCallback,
} from '../../clients/typescript/src/client.ts';
import type { operations } from '../../clients/typescript/src/openapi.ts';
import { areTypesOf } from '../../scripts/record-types.ts';
import { type Key, newFolder } from '../support/app.ts';
import { callbackIn, startCallbackApp } from '../support/callback-app.ts';
import { waitFor, waitForCallbacks } from '../support/deliveries.ts';
import { documentOf } from '../support/document.ts';
import { OLDER_NODE } from '../support/older-node.ts';
import { csrFor, newOrder } from '../support/orders.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const world = await startCallbackApp();
after(() => world[Symbol.asyncDispose]());
const { app } = world;

const clientFor = ({ keyId, authKey }: Key, url = app.url) => createClient({ url, keyId, authKey });
const ACCESS_KEY = 'typed-client';

function publish({ dcv_val }: Schemas['Order']): void {
  for (const { auth_path, auth_val } of dcv_val) world.outside.dns.set(auth_path, 'TXT', [auth_val]);
}

async function errorOf(call: Promise<object>): Promise<ResealError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ResealError) return error;
    throw error;
  }
  assert.fail('the call succeeded');
}

test('the whole journey, with no types but the generated ones', async () => {
  const client = clientFor(await app.newKey());
  const { callback } = await client.saveCallbackSettings({ url: world.url('/typed'), access_key: ACCESS_KEY });
  const secret = callback?.signing_secret;
  assert.ok(secret);

  const names = ['www.example.com', 'example.com'];
  const placed = await client.placeOrder('ssl-dv', {
    certificate: { csr: csrFor(), common_name: 'www.example.com', dns_names: names, sign_hash: 'sha256' },
    dcv_method: 'dns',
  });
  const waiting = await client.getOrder(placed.id);
  assert.equal(waiting.status, 'domain_verifing');
  publish(waiting);
  const proven = await client.validateDomains(placed.id);
  assert.equal(proven.status, 'issued');
  const { Certificate: first } = await client.getCertificate(placed.certificate.id);
  assert.deepEqual([first.status, first.version, first.dns_names], ['issued', 1, names]);

  const fewer: Schemas['ReissueRequest'] = {
    certificate: { csr: csrFor(), common_name: 'www.example.com', dns_names: [], sign_hash: 'sha256' },
  };
  const refused = await errorOf(client.reissueCertificate(placed.id, fewer));
  assert.ok(refused.code === 'remove_domain_not_confirmed', refused.code);
  assert.deepEqual(refused.details.certificates, [first.id]);
  assert.equal(refused.status, 409);
  assert.match(refused.requestId ?? '', /^\w{26}$/);
  const { plan } = await client.reissueCertificate(placed.id, fewer, { dry_run: true });
  assert.deepEqual(plan?.missing_consents, ['remove_domain_not_confirmed']);
  const consent = { ...fewer, i_know_remove_domain_will_revoke_before_cert: true };
  const { certificate } = await client.reissueCertificate(placed.id, consent);
  assert.ok(certificate);

  const { callback: report } = await client.testCallback();
  assert.deepEqual([report.stage, report.http_status], ['response', 200]);
  const delivered = await waitFor('both issuances and the revocation', async () => {
    const { deliveries } = await client.listDeliveries({ order_id: placed.id, state: 'delivered', limit: 10 });
    return deliveries.length === 3 && deliveries;
  });
  assert.deepEqual(delivered.map(({ action }) => action).sort(), ['order:issued', 'order:issued', 'order:revoked']);
  const [received] = await waitForCallbacks(world, certificate.id);
  assert.ok(received);
  const now = app.now();
  const verified = await verifyCallback(received.headers, received.text, { accessKey: ACCESS_KEY, secret, now });
  assert.ok(verified.event.action_id === 'order:issued');
  assert.deepEqual([verified.event.order_id, verified.event.cert_id], [placed.id, certificate.id]);
  assert.ok(delivered.some(({ id }) => id === verified.id));

  const revoked = await client.revokeCertificate(certificate.id, { reason: 'superseded' });
  const number: number | null = revoked.certificate.revocation?.crl_number ?? null;
  assert.ok(Number.isSafeInteger(number) && number !== null && number > 2 ** 31, `${number}`);
});

test('errors have the code of the service, and their messages the language of the client', async () => {
  const { keyId, authKey } = await app.newKey();
  const { message } = await errorOf(createClient({ url: app.url, keyId, authKey, language: 'zh-CN' }).getOrder('none'));
  assert.match(message, /^该账户下没有此订单，/);
  const wrong = await errorOf(createClient({ url: `${app.url}/`, keyId, authKey: 'wrong' }).getAccount());
  assert.deepEqual([wrong.code, wrong.status], ['unauthenticated_request', 401]);
  const elsewhere = await errorOf(createClient({ url: `${app.url}/other`, keyId, authKey }).getAccount());
  assert.ok(elsewhere.code === 'unexpected_response', elsewhere.code);
  assert.equal(elsewhere.details.code, 'route_not_found');
});

test('an answer lost on the wire is asked for again, and gives the same certificate', async () => {
  const { key, id } = await newOrder(app);
  await using proxy = await TcpProxy.to('127.0.0.1', Number(new URL(app.url).port));
  const sent: string[] = [];
  proxy.cutAfter = '/reissue';
  proxy.tap = () => ({
    sent: (bytes) => sent.push(...(/idempotency-key: (\S+)/i.exec(bytes.toString('latin1'))?.slice(1) ?? [])),
    // The service has answered: only this answer gets lost.
    received: () => queueMicrotask(() => (proxy.cutAfter = undefined)),
  });
  const client = clientFor(key, `http://127.0.0.1:${proxy.port}`);
  const { certificate } = await client.reissueCertificate(id, {
    certificate: { csr: csrFor(), common_name: 'www.example.com', sign_hash: 'sha256' },
  });
  assert.equal(sent.length, 2);
  assert.equal(new Set(sent).size, 1, 'both requests have the same key');
  const { Certificate: current } = await client.getCertificate((await client.getOrder(id)).certificate_id ?? '');
  assert.equal(current.id, certificate?.id);
  assert.equal(current.version, 2, 'after the first of the order there is one by reissue, not two');
});

test('a list is one page when awaited, and every entry when iterated', async () => {
  const key = await app.newKey();
  const placed: string[] = [];
  for (let count = 0; count < 5; count++) placed.push((await newOrder(app, {}, key)).id);
  const client = clientFor(key);
  const page = await client.listOrders({ limit: 2 });
  assert.deepEqual(
    page.orders.map(({ id }) => id),
    placed.slice(0, 2),
  );
  const seen: string[] = [];
  for await (const { id } of client.listOrders({ limit: 2 })) seen.push(id);
  assert.deepEqual(seen, placed);
  const rest: string[] = [];
  for await (const { id } of client.listOrders({ limit: 2, after: page.next_after ?? '' })) rest.push(id);
  assert.deepEqual(rest, placed.slice(2));
  const refused = client.listOrders({ limit: 0 })[Symbol.asyncIterator]();
  await assert.rejects(refused.next(), { name: 'ResealError', code: 'invalid_parameters', field: 'limit' });
});

test('the signing API has its answers without an envelope, and its own errors', async () => {
  const client = clientFor(await app.newKey());
  assert.ok((await client.getSigningInfo({})).methods.includes('signatures/signHash'));
  const { access_token: token } = await client.logInToSign();
  assert.equal(await client.revokeSigningToken({ token }), undefined);
  const refused = await errorOf(client.getSigningCredential({ credentialID: 'none' }));
  assert.ok(refused.code === 'signing_error', refused.code);
  assert.equal(refused.details.error, 'invalid_request');
});

test('no callback that differs from the one sent is accepted, and the error says why', async () => {
  const client = clientFor(await app.newKey());
  const { callback } = await client.saveCallbackSettings({ url: world.url('/forged'), access_key: ACCESS_KEY });
  await client.testCallback();
  const { headers, text } = callbackIn(world.receiver);
  const secrets = { accessKey: ACCESS_KEY, secret: callback?.signing_secret ?? '', now: app.now() };
  const accepted = await verifyCallback(new Headers(headers), Buffer.from(text), secrets);
  assert.deepEqual([accepted.event.action_id, accepted.sentAt.getTime()], ['order:issued', app.now()]);
  await verifyCallback(headers, text, { ...secrets, accessKey: ['an old one', ACCESS_KEY], toleranceSeconds: 0 });

  const MINUTE = 60_000;
  const other = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=';
  const timestamp = String(Number(headers['webhook-timestamp']) + 1);
  const cases = {
    body: [headers, text.replace('issued', 'Issued'), secrets, 'signature_wrong'],
    empty: [headers, '', secrets, 'signature_wrong'],
    id: [{ ...headers, 'webhook-id': 'other' }, text, secrets, 'signature_wrong'],
    time: [{ ...headers, 'webhook-timestamp': timestamp }, text, secrets, 'signature_wrong'],
    secret: [headers, text, { ...secrets, secret: other }, 'signature_wrong'],
    signature: [{ ...headers, 'webhook-signature': 'v1,AAAA v2,AAAA v1,%' }, text, secrets, 'signature_wrong'],
    'no signature': [{ ...headers, 'webhook-signature': '' }, text, secrets, 'header_missing'],
    'no access key': [{ ...headers, 'x-cc-callback-auth': undefined }, text, secrets, 'header_missing'],
    'access key': [headers, text, { ...secrets, accessKey: `${ACCESS_KEY}.` }, 'access_key_wrong'],
    old: [headers, text, { ...secrets, now: app.now() + 6 * MINUTE }, 'timestamp_outside_tolerance'],
    'ahead of time': [headers, text, { ...secrets, now: app.now() - 6 * MINUTE }, 'timestamp_outside_tolerance'],
    'no time': [{ ...headers, 'webhook-timestamp': 'now' }, text, secrets, 'timestamp_outside_tolerance'],
  } as const;
  for (const [name, [given, body, options, reason]] of Object.entries(cases)) {
    const error = await errorOf(verifyCallback(given, body, options));
    assert.ok(error.code === 'callback_rejected', name);
    assert.equal(error.details.reason, reason, name);
  }
  for (const wrong of [{ secret: '' }, { secret: 'whsec_c2hvcnQ=' }, { accessKey: '' }, { accessKey: [] }]) {
    await assert.rejects(verifyCallback(headers, text, { ...secrets, ...wrong }), TypeError);
  }
  // As middleware leaves it.
  await assert.rejects(verifyCallback(headers, JSON.parse(text), secrets), {
    name: 'TypeError',
    message: /parsed JSON/,
  });
});

test('the committed types and the table are those of the document', async () => {
  assert.ok(areTypesOf(await documentOf(app)), 'make them anew with: npm run record-types');
});

type IsOpen<T> = unknown extends T
  ? true
  : T extends readonly (infer E)[]
    ? IsOpen<E>
    : T extends object
      ? true extends { [K in keyof T]-?: IsOpen<T[K]> }[keyof T]
        ? true
        : false
      : false;
/** Operations whose answer has a part of unknown type. */
type OpenAnswers = { [O in OperationId]: true extends IsOpen<Answer<O>> ? O : never }[OperationId];
/** Errors whose details have. */
type OpenDetails = ResealError extends infer E ? (E extends ResealError ? IsOpen<E['details']> : never) : never;
/** Query parameters that have the name of an option. */
type Ambiguous = NamesOf<operations[OperationId]['parameters']['query']> &
  ('signal' | 'limits' | 'idempotencyKey' | 'headers');
type NamesOf<Query> = Query extends object ? keyof Query : never;
/** Do not compile if there is one. */
const OPEN: [OpenAnswers, true & OpenDetails, Ambiguous] extends [never, never, never] ? 0 : never = 0;

test('nothing is of unknown type, and nothing is made to fit', () => {
  assert.equal(OPEN, 0);
  const [journey = ''] = readFileSync(import.meta.filename, 'utf8').split('type IsOpen<T>');
  const code = journey.replace(/as const|\/\/.*|: never/g, '');
  assert.doesNotMatch(code, /\bunknown\b|\bany\b|\bas\b|@ts-|biome-ignore|\w!/);
});

/** Each session of the README as a module, with what it takes for granted. */
function readmeSessions(folder: string): string[] {
  const given = `declare const [keyId, authKey, csr, accessKey, secret]: string[] & [string, string, string, string, string];
    declare const [request, rawBody]: [{ headers: Headers }, Uint8Array];
    declare function publishTxt(name: string, value: string): Promise<void>;
    declare function mayRevoke(certificates: string[]): Promise<boolean>;`;
  const readme = readFileSync(new URL('../../clients/typescript/README.md', import.meta.url), 'utf8');
  return [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = ''], index) => {
    writeFileSync(
      join(folder, `readme-${index}.mts`),
      `${given}\n{\n${code.replace(/^(import .*)$/gm, '}\n$1\n{')}\n}\n`,
    );
    return `readme-${index}.mts`;
  });
}

test('the package runs on Node 20 without our sources, and has its types', async (context) => {
  const folder = newFolder();
  const [packed]: [{ filename: string; files: { path: string }[] }] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
      cwd: new URL('../../clients/typescript/', import.meta.url).pathname,
      encoding: 'utf8',
      stdio: 'pipe',
      // What scripts print comes first.
    }).replace(/^[^[]*/, ''),
  );
  const strays = packed.files.filter(({ path }) => !/^(dist\/[\w-]+\.(js|d\.ts)|package\.json|README\.md)$/.test(path));
  assert.deepEqual(strays, []);
  const installed = join(folder, 'node_modules/reseal-client');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', join(folder, packed.filename), '-C', installed, '--strip-components=1']);
  const { keyId, authKey } = await app.newKey();
  // One file for both: what runs is what was checked.
  writeFileSync(
    join(folder, 'session.mjs'),
    `// @ts-check
import { createClient, ResealError } from 'reseal-client';
import { verifyCallback } from 'reseal-client/verify-callback';
const [url = '', keyId = '', authKey = ''] = (await import('node:process')).argv.slice(2);
const client = createClient({ url, keyId, authKey });
const { account } = await client.getAccount();
/** @type {string} */
const name = account.name;
/** @type {string[]} */
const failures = [];
for (const attempt of [() => client.getOrder('none'), () => verifyCallback({}, '', { accessKey: 'a', secret: 'whsec_' + 'A'.repeat(44) })])
  await attempt().catch((error) => failures.push(error instanceof ResealError ? error.code : 'another class'));
console.log([name, ...failures].join(' '));
// @ts-expect-error: there is no such field.
account.no_such_field;
`,
  );
  const files = ['session.mjs', ...readmeSessions(folder)];
  const types = new URL('../../node_modules/@types', import.meta.url).pathname;
  const options = [
    '--noEmit',
    '--allowJs',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--types',
    'node',
  ];
  const tsc = new URL('../../node_modules/.bin/tsc', import.meta.url).pathname;
  execFileSync(tsc, [...options, '--typeRoots', types, ...files], { cwd: folder, stdio: 'inherit' });
  const node = OLDER_NODE ?? process.execPath;
  context.diagnostic(`run by ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}`);
  const { stdout } = await promisify(execFile)(node, [join(folder, 'session.mjs'), app.url, keyId, authKey]);
  assert.equal(stdout, 'Test order_not_found callback_rejected\n');
});
