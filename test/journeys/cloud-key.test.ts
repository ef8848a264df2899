// The operator lists the keys that the service holds for an account, and destroys one.
import assert from 'node:assert/strict';
import { userInfo } from 'node:os';
import { test } from 'node:test';
import { startApp } from '../support/app.ts';
import { authorize, newCloudKey } from '../support/cloud-keys.ts';
import { reseal } from '../support/in-process.ts';

test('keys are listed without their secrets, and destroyed only after confirmation', async () => {
  await using app = await startApp();
  const held = await newCloudKey(app);
  const { accountId } = held.key;
  const settings = { RESEAL_DATA_DIR: app.folder };
  const list = async () => {
    const { code, out } = await reseal(['cloud-key', 'list', accountId, '--json'], settings);
    assert.equal(code, 0, out);
    return JSON.parse(out).cloud_keys;
  };
  const created_at = new Date(app.now()).toISOString();
  const shown = {
    ...{ id: held.id, account_id: accountId, key_type: 'p256', bits: 256, state: 'active', locked_until: null },
    ...{ created_at, destroyed_at: null, certificate_id: held.certificateId },
  };
  assert.deepEqual(await list(), [shown]);
  const text = await reseal(['cloud-key', 'list', accountId], settings);
  assert.match(text.out, new RegExp(`^ID .*\\n${held.id} +p256 256 +active +${created_at} +${held.certificateId}`));

  const table: [string[], number, RegExp][] = [
    [['destroy', accountId, held.id], 2, /cannot be restored\n.*--yes/],
    [['destroy', accountId, 'nothing', '--yes'], 1, /no such cloud-held key/],
    [['destroy', (await app.newKey()).accountId, held.id, '--yes'], 1, /no such cloud-held key/],
    [['list', 'nobody'], 1, /no such account/],
  ];
  for (const [args, code, message] of table) {
    const result = await reseal(['cloud-key', ...args], settings);
    assert.equal(result.code, code, `${args.join(' ')}: ${result.err}`);
    assert.match(result.err, message);
  }
  assert.deepEqual(await list(), [shown], 'not destroyed yet');

  const destroyed = await reseal(['cloud-key', 'destroy', accountId, held.id, '--yes'], settings);
  assert.equal(destroyed.code, 0, destroyed.err);
  assert.deepEqual(
    (await list()).map(({ state }: { state: string }) => state),
    ['destroyed'],
  );
  const refused = await authorize(app, held, [Buffer.alloc(32).toString('base64')]);
  assert.equal(refused.status, 400, 'a running service refuses the key at once');
  const entries = await app.app.store.audit.listOf(accountId, { limit: 100 });
  const { actor, subject } = entries.find(({ action }) => action === 'cloud-key:destroyed')!;
  assert.deepEqual([actor, subject], [`cli:${userInfo().username}`, held.id]);
});
