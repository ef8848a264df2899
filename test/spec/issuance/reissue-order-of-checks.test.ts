// With two faults the earlier check answers. Every pair is tested, not only neighbours.
import assert from 'node:assert/strict';
import type { Answer, Key } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';
import { startWatchedApp } from '../../support/watched-app.ts';

const { app, rows } = await startWatchedApp();

const USED = { 'Idempotency-Key': 'used-before' };
const NAMES = ['example.com'];

/** Two validated names, and an idempotency key that was used with another body. */
async function usedOrder() {
  const order = await newOrder(app, { dnsNames: NAMES });
  const { status } = await reissue(app, order, body({ validity_days: 77 }), '', USED);
  assert.equal(status, 200);
  return order;
}
const issued = await usedOrder();
const pending = await usedOrder();
const { status } = await reissue(app, pending, body({ dns_names: [...NAMES, 'new.example.com'] }));
assert.equal(status, 200);
const waiting = await newOrder(app, { dnsNames: NAMES, vouches: false });

interface Attempt {
  key: Key | undefined;
  id: string;
  headers: Record<string, string>;
  certificate: Record<string, unknown>;
  top: Record<string, unknown>;
}

type Fault = readonly [
  check: string,
  put: (into: Attempt) => void,
  status: number,
  code: string,
  field?: string | undefined,
  /** Faults of earlier checks that cannot be combined with this one. */
  notWith?: readonly string[],
];

const sent =
  (change: Record<string, unknown>): Fault[1] =>
  ({ certificate }) =>
    Object.assign(certificate, change);
const P = 'invalid_parameters';

/** One or more faults per check, in the order of the contract. */
const FAULTS: readonly Fault[] = [
  ['authentication', (tx) => (tx.key = undefined), 401, 'unauthenticated_request'],
  ['shape', ({ top }) => (top.i_know_will_revoke_last_cert = 'true'), 400, P, 'i_know_will_revoke_last_cert'],
  ['shape, sign_hash', sent({ sign_hash: 'md5' }), 400, P, 'certificate.sign_hash'],
  ['idempotency, malformed', (tx) => (tx.headers['Idempotency-Key'] = 'a b'), 400, P, 'Idempotency-Key'],
  [
    'idempotency, reused',
    ({ headers }) => (headers['Idempotency-Key'] ??= 'used-before'),
    ...([422, 'idempotency_key_reused', undefined] as const),
  ],
  // An idempotency key used for an order implies that the order exists.
  ['order', (tx) => (tx.id = 'nothing'), 404, 'order_not_found', undefined, ['idempotency, reused']],
  ['state, pending', (tx) => (tx.id = tx.id === 'nothing' ? tx.id : pending.id), 409, 'reissue_in_progress'],
  [
    'state, waiting',
    (tx) => (tx.id = tx.id === issued.id ? waiting.id : tx.id),
    ...([409, 'order_state_conflict', undefined, ['idempotency, reused', 'state, pending']] as const),
  ],
  ['product', sent({ csr_from: 'sign-cloud-csc' }), 400, P, 'certificate.csr_from'],
  ['names', sent({ common_name: 'a_b.example.com' }), 400, 'invalid_domain', 'certificate.common_name'],
  [
    'consents',
    sent({ dns_names: [] }),
    ...([409, 'remove_domain_not_confirmed', 'i_know_remove_domain_will_revoke_before_cert'] as const),
  ],
  ['key', sent({ csr: 'bm90aGluZw==' }), 400, 'invalid_csr', 'certificate.csr'],
  ['validity', sent({ validity_days: 0 }), 400, P, 'certificate.validity_days'],
  ['validity, date', sent({ custom_expiration_date: '2026-01-01' }), 400, P, 'certificate.custom_expiration_date'],
  ['domain validation', ({ top }) => (top.dcv_method = 'email'), 400, 'invalid_dcv_method', 'dcv_method'],
  ['domain validation, scope', ({ top }) => (top.dcv_scope = 'zone'), 400, P, 'dcv_scope'],
];

function attempt(...faults: readonly Fault[]): Promise<Answer> {
  const to: Attempt = { key: issued.key, id: issued.id, headers: {}, certificate: {}, top: {} };
  for (const [, put] of faults) put(to);
  const key = to.key && (to.id === pending.id ? pending.key : to.id === waiting.id ? waiting.key : issued.key);
  const json = body(to.certificate, to.top);
  return app.call('POST', `/openapi/v3/orders/${to.id}/reissue`, { key, headers: to.headers, json });
}

rule('reissue 8', 'The checks run in this order, and the first that fails is the answer', async () => {
  const before = rows();
  const told = ({ status: found, body: { code, field } }: Answer) => [found, code, field];
  for (const fault of FAULTS) {
    const [check, , expected, code, field] = fault;
    assert.deepEqual(told(await attempt(fault)), [expected, code, field], check);
  }
  let pairs = 0;
  for (const [index, first] of FAULTS.entries()) {
    for (const second of FAULTS.slice(index + 1)) {
      const [check, , expected, code, field] = first;
      if (second[5]?.includes(check)) continue;
      const answer = await attempt(first, second);
      assert.deepEqual(told(answer), [expected, code, field], `${check} + ${second[0]}: ${answer.text}`);
      pairs += 1;
    }
  }
  assert.ok(pairs > 110, `${pairs} pairs`);
  assert.deepEqual(told(await attempt(...FAULTS)), [401, 'unauthenticated_request', undefined]);
  assert.deepEqual(rows(), before, 'none of them wrote anything');
});
