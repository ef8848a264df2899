// A customer's journey through the generated types, which the compiler checks with the rest: place, prove, certificate,
// reissue with consent, callback test, deliveries, revoke. No cast, no suppression, nothing of unknown type.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import type { components, operations } from '../../clients/typescript/src/openapi.ts';
import { areTypesOf } from '../../scripts/record-types.ts';
import { startCallbackApp } from '../support/callback-app.ts';
import { waitFor } from '../support/deliveries.ts';
import { documentOf } from '../support/document.ts';
import { csrFor } from '../support/orders.ts';
import { type Success, TypedClient } from '../support/typed-client.ts';

const world = await startCallbackApp();
after(() => world[Symbol.asyncDispose]());

type Order = components['schemas']['Order'];

/** The data of a success. Any other code fails the test. */
function dataOf<T>(answer: { code: 'success'; data: T } | { code: string; message: string }): T {
  if ('data' in answer) return answer.data;
  assert.fail(`${answer.code}: ${answer.message}`);
}

function publish({ dcv_val }: Order): void {
  for (const { auth_path, auth_val } of dcv_val) world.outside.dns.set(auth_path, 'TXT', [auth_val]);
}

test('the whole journey, with no types but the generated ones', async () => {
  const client = new TypedClient(world.app.url, await world.app.newKey());
  const body = { url: world.url('/typed'), access_key: 'typed-client' };
  const { callback } = dataOf(await client.call('put', '/openapi/v3/account/callback', { body }));
  assert.match(callback?.signing_secret ?? '', /^whsec_/);

  const names = ['www.example.com', 'example.com'];
  const placed = dataOf(
    await client.call('post', '/openapi/v3/orders/{id}', {
      path: { id: 'ssl-dv' },
      body: {
        certificate: { csr: csrFor(), common_name: 'www.example.com', dns_names: names, sign_hash: 'sha256' },
        dcv_method: 'dns',
      },
    }),
  );
  const path = { id: placed.id };
  const waiting = dataOf(await client.call('get', '/openapi/v3/orders/{id}', { path }));
  assert.equal(waiting.status, 'domain_verifing');
  publish(waiting);
  const proven = dataOf(await client.call('put', '/openapi/v3/orders/{id}/dcv-completed', { path }));
  assert.equal(proven.status, 'issued');
  const first = dataOf(await client.call('get', '/openapi/v3/certs/{id}', { path: placed.certificate })).Certificate;
  assert.deepEqual([first.status, first.version, first.dns_names], ['issued', 1, names]);

  const reissue = '/openapi/v3/orders/{id}/reissue';
  const fewer = {
    certificate: { csr: csrFor(), common_name: 'www.example.com', dns_names: [], sign_hash: 'sha256' },
  } satisfies components['schemas']['ReissueRequest'];
  const refused = await client.call('post', reissue, { path, body: fewer });
  assert.ok(refused.code === 'remove_domain_not_confirmed', refused.code);
  assert.deepEqual(refused.details.certificates, [first.id]);
  const { plan } = dataOf(await client.call('post', reissue, { path, query: { dry_run: true }, body: fewer }));
  assert.deepEqual(plan?.missing_consents, ['remove_domain_not_confirmed']);
  const consent = { ...fewer, i_know_remove_domain_will_revoke_before_cert: true };
  const { certificate } = dataOf(
    await client.call('post', reissue, { path, header: { 'Idempotency-Key': 'typed' }, body: consent }),
  );
  assert.ok(certificate);

  const report = dataOf(await client.call('put', '/openapi/v3/account/callback/test', {})).callback;
  assert.deepEqual([report.stage, report.http_status], ['response', 200]);
  const query = { order_id: placed.id, state: 'delivered', limit: 10 } as const;
  const delivered = await waitFor('both issuances and the revocation', async () => {
    const { deliveries } = dataOf(await client.call('get', '/openapi/v3/account/callback/deliveries', { query }));
    return deliveries.length === 3 && deliveries;
  });
  assert.deepEqual(delivered.map(({ action }) => action).sort(), ['order:issued', 'order:issued', 'order:revoked']);

  const revoked = dataOf(
    await client.call('post', '/openapi/v3/certs/{id}/revoke', { path: certificate, body: { reason: 'superseded' } }),
  );
  const number: number | null = revoked.certificate.revocation?.crl_number ?? null;
  assert.ok(Number.isSafeInteger(number) && number !== null && number > 2 ** 31, `${number}`);
});

test('the committed types are those of the document', async () => {
  assert.ok(areTypesOf(await documentOf(world.app)), 'make them anew with: npm run record-types');
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
type OpenAnswers = {
  [O in keyof operations]: true extends IsOpen<Success<operations[O]>> ? O : never;
}[keyof operations];
/** Does not compile if there is one. */
const OPEN_ANSWERS: [OpenAnswers] extends [never] ? 0 : never = 0;

test('nothing is of unknown type, and nothing is made to fit', () => {
  assert.equal(OPEN_ANSWERS, 0);
  const [journey = ''] = readFileSync(import.meta.filename, 'utf8').split('type IsOpen<T>');
  assert.doesNotMatch(
    journey.replace(/as const|\/\/.*|: never/g, ''),
    /\bunknown\b|\bany\b|\bas\b|@ts-|biome-ignore|\w!/,
  );
});
