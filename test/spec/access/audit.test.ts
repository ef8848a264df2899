// The account's own audit rows over HTTP.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { CREDENTIAL_KINDS } from '../../../src/domain/access/credential.ts';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const PATH = '/openapi/v3/account/audit';

rule('permission 12', 'Only `standard` credentials may read the audit log of their account', async () => {
  const { accountId } = await app.newKey();
  for (const kind of CREDENTIAL_KINDS) {
    const { status, body } = await app.call('GET', PATH, { key: await app.anotherKey(accountId, kind) });
    assert.deepEqual(
      [kind, status, body.code],
      kind === 'standard' ? [kind, 200, 'success'] : [kind, 403, 'permission_denied'],
    );
  }
});

rule(
  'account 9',
  'lists what was done in the account and in no other, oldest first, page by page as the orders',
  async () => {
    const order = await newOrder(app);
    const { key } = order;
    await newOrder(app);
    for (let count = 0; count < 3; count += 1) assert.equal((await reissue(app, order, body())).status, 200);
    const seen: Record<string, unknown>[] = [];
    let after: string | null = '';
    do {
      const page = await app.call('GET', `${PATH}?limit=2${after === '' ? '' : `&after=${after}`}`, { key });
      assert.equal(page.status, 200, page.text);
      assert.ok(page.body.data.audit.length <= 2);
      seen.push(...page.body.data.audit);
      after = page.body.data.next_after;
    } while (after !== null);
    const actions = [
      'account:created',
      'key:created',
      'name:validated',
      'order:placed',
      ...Array(3).fill('order:reissued'),
    ];
    assert.deepEqual(
      seen.map(({ action }) => action),
      actions,
    );
    const last = seen.at(-1)!;
    assert.deepEqual(Object.keys(last).sort(), [
      'action',
      'actor',
      'at',
      'details',
      'id',
      'request_id',
      'subject',
      'via',
    ]);
    assert.deepEqual([last.actor, last.subject, last.at], [key.keyId, order.id, new Date(app.now()).toISOString()]);
    assert.equal((await app.call('GET', `${PATH}?limit=0`, { key })).body.field, 'limit');
  },
);

rule('account 10', "of the operator's acts neither the person nor `details` are shown", async () => {
  const key = await app.newKey();
  await app.app.access.suspendAccount(key.accountId, 'suspected fraud');
  await app.app.access.resumeAccount(key.accountId);
  const { body, text } = await app.call('GET', PATH, { key });
  const suspended = body.data.audit.find(({ action }: { action: string }) => action === 'account:suspended');
  assert.deepEqual([suspended.actor, suspended.details], ['operator', {}]);
  assert.doesNotMatch(text, /cli|fraud/);
});

rule('account 11', 'is the `X-Request-Id` of the answer to the request that caused it', async () => {
  const order = await newOrder(app);
  const { headers } = await reissue(app, order, body());
  const { audit } = (await app.call('GET', PATH, { key: order.key })).body.data;
  assert.equal(audit.at(-1).request_id, headers.get('x-request-id'));
});
