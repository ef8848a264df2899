import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { canonicalJson } from '../../src/domain/canonical-json.ts';
import { startApp } from '../support/app.ts';
import { body, newOrder, reissue } from '../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

/** The same value with the members of all objects reversed. */
const turned = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, turned(member)]),
  );
};

test('ignores the order of members, and nothing else', () => {
  assert.equal(canonicalJson(JSON.parse('{"b":[{"d":1,"c":"x"}],"a":null}')), '{"a":null,"b":[{"c":"x","d":1}]}');
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      // A parsed body: normalizes values such as minus zero.
      const [value, another] = [one, other].map((each) => JSON.parse(JSON.stringify(each)));
      assert.deepEqual(JSON.parse(canonicalJson(value)), value);
      assert.equal(canonicalJson(turned(value)), canonicalJson(value));
      let isSame = true;
      try {
        assert.deepEqual(value, another);
      } catch {
        isSame = false;
      }
      assert.equal(canonicalJson(value) === canonicalJson(another), isSame);
    }),
  );
  const own = JSON.parse('{"__proto__":{"a":1},"a":2}');
  assert.equal(canonicalJson(own), '{"__proto__":{"a":1},"a":2}');
});

test('nesting and length are limited by the body size only', () => {
  const deep = `${'['.repeat(130_000)}${']'.repeat(130_000)}`;
  assert.equal(canonicalJson(JSON.parse(deep)), deep);
  const long = `[${'0,'.repeat(130_000)}0]`;
  assert.equal(canonicalJson(JSON.parse(long)), long);
});

test('an idempotency key treats reordered members as the same body', async () => {
  const order = await newOrder(app);
  const headers = { 'Idempotency-Key': 'any-order' };
  const sent = body({ validity_days: 7 }, { dcv_scope: 'fqdn', unknown: { x: [{ y: 1, z: 2 }] } });
  const first = await reissue(app, order, sent, '', headers);
  assert.equal(first.status, 200, first.text);
  const again = await reissue(app, order, turned(sent), '', headers);
  assert.deepEqual([again.status, again.text], [200, first.text]);
  // Fields that the operation does not know are ignored, here too.
  const unknown = await reissue(app, order, { ...sent, unknown: { x: [{ y: 2, z: 1 }] } }, '', headers);
  assert.deepEqual([unknown.status, unknown.text], [200, first.text]);
  const another = await reissue(app, order, { ...sent, dcv_scope: 'base_domain' }, '', headers);
  assert.deepEqual([another.status, another.body.code], [422, 'idempotency_key_reused']);
});

test('an idempotency key works with a nested body, up to the bound on nesting', async () => {
  const order = await newOrder(app);
  const nested = (depth: number) =>
    JSON.stringify(body()).replace(/}$/, `,"unknown":${'['.repeat(depth)}${']'.repeat(depth)}}`);
  const headers = { 'Idempotency-Key': 'deep', 'Content-Type': 'application/json' };
  const path = `/openapi/v3/orders/${order.id}/reissue`;
  for (const [depth, status] of [
    [63, 200],
    [50_000, 400],
  ] as const) {
    const answer = await app.call('POST', path, { key: order.key, raw: nested(depth), headers });
    assert.equal(answer.status, status, answer.text);
  }
});
