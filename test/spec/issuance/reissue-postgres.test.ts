// The same contract lines on PostgreSQL, with two instances: text with a NUL, and one idempotency key on both instances.
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { after } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { newFolder, TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';

const postgres = await sharedPostgres();
after(() => postgres[Symbol.asyncDispose]());
const RESEAL_DATABASE_URL = await postgres.createDatabase();
const one = new TestApp(newFolder());
await one.start({ RESEAL_DATABASE_URL });
after(() => one.app.close());
after(() => one[Symbol.asyncDispose]());
const two = new TestApp(newFolder());
cpSync(one.folder, two.folder, { recursive: true, filter: (file) => !file.includes('lock') });
await two.start({ RESEAL_DATABASE_URL });
after(() => two.app.close());
after(() => two[Symbol.asyncDispose]());

rule('order 4', 'of any length or content is looked up, and one that finds nothing', async () => {
  const { key } = await newOrder(one);
  for (const id of ['%00', 'a%00b']) {
    const calls = [
      [await one.call('GET', `/openapi/v3/orders/${id}`, { key }), 'order_not_found'],
      [await one.call('POST', `/openapi/v3/orders/${id}/reissue`, { key, json: body() }), 'order_not_found'],
      [await one.call('GET', `/openapi/v3/certs/${id}`, { key }), 'cert_not_found'],
    ] as const;
    for (const [answer, code] of calls) assert.deepEqual([answer.status, answer.body.code], [404, code], answer.text);
  }
  const { status, body: answer } = await one.call('GET', '/openapi/v3/orders?after=%00', { key });
  assert.deepEqual([status, answer.field], [400, 'after'], 'a cursor is no identifier');
});

rule('errors invalid_domain', 'a name is not one the product can certify', async () => {
  const order = await newOrder(one);
  for (const change of [{ common_name: 'a\0.example.com' }, { dns_names: ['a\0.example.com'] }]) {
    const { status, body: answer } = await reissue(one, order, body(change));
    assert.deepEqual([status, answer.code], [400, 'invalid_domain']);
  }
});

rule('reissue 39', 'gives the same answer and no second certificate', async () => {
  const headers = { 'Idempotency-Key': 'once' };
  for (let round = 0; round < 10; round += 1) {
    for (const change of [{}, { dns_names: ['new.example.com'] }]) {
      const order = await newOrder(one);
      const json = body(change);
      const answers = await Promise.all(
        [one, two, one, two, one, two].map(async (app) => {
          await sleep(Math.random() * 12);
          return await reissue(app, order, json, '', headers);
        }),
      );
      const texts = new Set(answers.map(({ status, body: { code }, text }) => (status === 200 ? text : code)));
      assert.equal(texts.size, 1, [...texts].join(' '));
    }
  }
});
