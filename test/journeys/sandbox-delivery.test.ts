// The commands of the greeting send real callbacks, visible from the sender's and the receiver's side.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { SandboxFile } from '../../src/sandbox/folder.ts';
import { newFolder } from '../support/app.ts';
import { waitFor } from '../support/deliveries.ts';
import { reseal } from '../support/in-process.ts';
import { startReseal } from '../support/process.ts';

type Callback = SandboxFile['receiver']['callbacks'][number] & { readonly body: Record<string, string> };

test('the callback of a reissue pasted from the greeting arrives at the receiver, and can be sent again', async () => {
  const folder = newFolder();
  const settings = { RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' };
  await using sandbox = startReseal(['sandbox'], settings);
  await sandbox.said(/Stop with Ctrl-C/);
  const pasted = /^ {2}(curl -s \S+\/reissue \\\n[^\n]+\\\n[^\n]+\\\n[^\n]+)$/m.exec(sandbox.output)?.[1] ?? '';
  const { data } = JSON.parse(execFileSync('/bin/sh', ['-c', pasted], { encoding: 'utf8' }));
  const sandboxFile = (): SandboxFile => JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8'));
  const callbacks = () =>
    (sandboxFile().receiver.callbacks as readonly Callback[]).filter(
      ({ body }) => body.cert_id === data.certificate.id,
    );
  const [callback] = await waitFor('it has arrived', () => callbacks().length === 1 && callbacks());
  const [account] = sandboxFile().accounts;
  assert.deepEqual(
    [callback?.body.action_id, callback?.headers['x-cc-callback-auth'], callback?.answer],
    ['order:issued', account?.callback?.access_key, '200'],
  );
  assert.match(sandbox.output, /node bin\/reseal\.mjs callback deliveries \w+/);

  const command = async (...args: string[]) => {
    const { code, out, err } = await reseal([...args, '--json'], settings);
    assert.equal(code, 0, err);
    return JSON.parse(out);
  };
  const id = account!.id;
  const delivered = () => command('callback', 'deliveries', id, '--state', 'delivered', '--since', '1h');
  const { deliveries } = await waitFor('it is noted', async () => {
    const found = await delivered();
    return found.deliveries.length > 0 && found;
  });
  assert.deepEqual([deliveries[0].id, deliveries[0].cert_id], [callback?.headers['webhook-id'], data.certificate.id]);
  const table = await reseal(['callback', 'deliveries', id], settings);
  assert.match(table.out, /^ID +ACTION +ORDER +STATE +ATTEMPTS +LAST +CREATED +NEXT\n/);
  assert.match(table.out, /suppressed +0 +not_configured/, 'the demo orders themselves sent no callbacks');

  await command('callback', 'resend', id, deliveries[0].id);
  await waitFor('it has arrived again', () => callbacks().length === 2);
  const { resent } = await command('callback', 'replay', id, '--state', 'suppressed');
  assert.equal(resent, sandboxFile().orders.length);
  await waitFor('the others have arrived', async () => (await delivered()).deliveries.length === resent + 1);
  const rotated = await command('callback', 'rotate-secret', id);
  assert.match(rotated.signing_secret, /^whsec_/);
  await command('callback', 'set', id, '--disabled');
  execFileSync('/bin/sh', ['-c', pasted]);
  await waitFor('it is held back', async () => (await command('callback', 'show', id)).callback.suppressed.count === 1);
  const { out } = await reseal(['callback', 'show', id], settings);
  assert.ok(
    out.includes(`\n  reseal callback set ${id} --enabled\n  reseal callback replay ${id} --state suppressed`),
    out,
  );
  const wrong = await reseal(['callback', 'replay', id], settings);
  assert.deepEqual([wrong.code, /--state is missing/.test(wrong.err)], [2, true]);
  assert.equal((await reseal(['callback', 'resend', id, 'nothing'], settings)).code, 1);
  assert.equal((await reseal(['callback', 'deliveries', 'nobody'], settings)).code, 1);
});
