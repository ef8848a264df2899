// Each validation method against the real program: place an order, publish its instructions with the sandbox's commands,
// and wait for issuance; then more names, fewer names, and a wildcard.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { SandboxFile } from '../../src/sandbox/folder.ts';
import { newFolder } from '../support/app.ts';
import { reseal } from '../support/in-process.ts';
import { csrFor } from '../support/orders.ts';
import { type RunningProcess, startReseal } from '../support/process.ts';

const folder = newFolder();
const settings = { RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' };
let running: RunningProcess;
let sandbox: SandboxFile;
before(async () => {
  running = startReseal(['sandbox'], settings);
  await running.said(/Stop with Ctrl-C/);
  sandbox = JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8'));
});
after(() => running[Symbol.asyncDispose]());

interface Entry {
  readonly domain: string;
  readonly dcv_method: string;
  readonly auth_path: string;
  readonly auth_val: string;
  readonly verified: boolean;
  readonly problem: { readonly result: string } | null;
}

async function api(method: string, path: string, json?: object) {
  const [key] = sandbox.accounts[0]!.credentials;
  const answer = await fetch(`${sandbox.base_url}/openapi/v3/orders/${path}`, {
    method,
    headers: {
      'X-CC-Key-ID': key!.key_id,
      'X-CC-Auth-Key': key!.auth_key,
      ...(json && { 'Content-Type': 'application/json' }),
    },
    ...(json && { body: JSON.stringify(json) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape, and the test says what it finds.
  return { status: answer.status, ...((await answer.json()) as { code: string; field?: string; data: any }) };
}

const request = (names: readonly string[], top: object = {}) => ({
  certificate: { csr: csrFor(), common_name: names[0], dns_names: names.slice(1), sign_hash: 'sha256' },
  ...top,
});

/** Publishes what the order shows, with the CLI. */
async function publish(id: string): Promise<Entry[]> {
  const { data } = await api('GET', id);
  const open = (data.dcv_val as Entry[]).filter(({ auth_val, verified }) => auth_val !== '' && !verified);
  for (const { domain, dcv_method, auth_path, auth_val } of open) {
    const command =
      dcv_method === 'file'
        ? ['http', 'set', `http://${domain}${auth_path}`, auth_val]
        : ['dns', 'set', auth_path, 'TXT', auth_val];
    const { code, err } = await reseal(['sandbox', ...command], settings);
    assert.equal(code, 0, err);
  }
  return open;
}

async function reissued(id: string, names: readonly string[], top: object = {}): Promise<string> {
  const answer = await api('POST', `${id}/reissue`, request(names, top));
  assert.equal(answer.code, 'success', JSON.stringify(answer));
  return (await api('GET', id)).data.status;
}

const completed = async (id: string): Promise<string> => (await api('PUT', `${id}/dcv-completed`)).data.status;
const namesOf = async (id: string): Promise<string[]> => (await api('GET', id)).data.certificate.dns_names;
const CONSENT = { i_know_remove_domain_will_revoke_before_cert: true };

for (const [index, method] of (['dns', 'file', 'dns-persist'] as const).entries()) {
  test(`${method}: placed, validated, issued; a name added, a name removed, a wildcard`, async () => {
    const base = `journey${index}.com`;
    const [first, second, wildcard] = [`www.${base}`, `api.${base}`, `*.${base}`];
    const placed = await api('POST', 'ssl-dv', request([first], { dcv_method: method }));
    assert.equal(placed.code, 'success');
    const { id } = placed.data;
    assert.equal((await api('GET', id)).data.status, 'domain_verifing');
    assert.equal(await completed(id), 'domain_verifing', 'nothing is published yet');
    assert.equal((await publish(id)).length, 1);
    assert.equal(await completed(id), 'issued');
    assert.equal(
      (await api('GET', id)).data.certificate.id,
      placed.data.certificate.id,
      'under the id in the response',
    );

    assert.equal(await reissued(id, [first, second]), 'reissuing');
    assert.deepEqual(
      (await publish(id)).map(({ domain }) => domain),
      [second],
    );
    assert.equal(await completed(id), 'issued');
    assert.deepEqual(await namesOf(id), [first, second]);

    assert.equal(await reissued(id, [first], CONSENT), 'issued', 'the remaining names are already validated');
    assert.deepEqual(await namesOf(id), [first]);

    if (method === 'file') {
      const refused = await api('POST', `${id}/reissue`, request([first, wildcard]));
      assert.deepEqual([refused.status, refused.code, refused.field], [400, 'invalid_dcv_method', 'dcv_method']);
      return;
    }
    const policy = method === 'dns-persist' ? { dcv_method: method, persist_policy: 'wildcard' } : {};
    assert.equal(await reissued(id, [first, wildcard], policy), 'reissuing');
    await publish(id);
    assert.equal(await completed(id), 'issued');
    assert.deepEqual(await namesOf(id), [first, wildcard]);
  });
}

test('dns-persist: with and without expiry, and with another policy, as the order instructs', async () => {
  const name = 'www.journey-persist.com';
  const path = `_validation-persist.${name}`;
  const until = Math.floor(Date.now() / 1000) + 3_600;
  const wanted = { dcv_method: 'dns-persist', persist_until: until };
  const { id } = (await api('POST', 'ssl-dv', request([name], wanted))).data;
  const [entry] = await publish(id);
  assert.match(entry?.auth_val ?? '', new RegExp(`; persistUntil=${until}$`));
  assert.equal(await completed(id), 'issued');

  const ended = (entry?.auth_val ?? '').replace(`=${until}`, '=1');
  assert.equal((await reseal(['sandbox', 'dns', 'set', path, 'TXT', ended], settings)).code, 0);
  assert.equal(await reissued(id, [name]), 'reissuing', 'the record has expired');
  const check = await api('GET', `${id}/dcv-check`);
  assert.equal(check.data.checks[0].result, 'unauthorized');

  const changed = await api('PUT', `${id}/dcv-method`, { dcv_method: 'dns-persist', persist_until: 0 });
  const [open] = changed.data.dcv_val as Entry[];
  assert.doesNotMatch(open?.auth_val ?? '', /persistUntil|policy/);
  await publish(id);
  assert.equal(await completed(id), 'issued');

  const below = `deep.${name}`;
  assert.equal(
    await reissued(id, [name, below], { dcv_method: 'dns-persist', persist_policy: 'wildcard' }),
    'reissuing',
  );
  const { data } = await api('GET', id);
  const record = (data.dcv_val as Entry[]).find(({ domain }) => domain === name)?.auth_val ?? '';
  assert.match(record, /; policy=wildcard$/);
  // One record at the name covers names below it.
  assert.equal((await reseal(['sandbox', 'dns', 'set', path, 'TXT', record], settings)).code, 0);
  assert.equal(await completed(id), 'issued');

  assert.equal((await reseal(['sandbox', 'dns', 'clear', path], settings)).code, 0);
  assert.equal(await reissued(id, [name, below]), 'reissuing', 'removing the record withdraws the authorization');
});
