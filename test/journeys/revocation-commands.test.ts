// The operator's revocation commands next to a service in another process: each sees at once what the other records.
import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { newUsedFolder } from '../support/app.ts';
import { caChain } from '../support/authority.ts';
import { csr, keyPair, newKeyPair, pem } from '../support/csr.ts';
import { reseal } from '../support/in-process.ts';
import { startReseal } from '../support/process.ts';
import { crlOf, derOf, ocspStatus, partsOf } from '../support/status.ts';

const folder = await newUsedFolder();
const settings = { RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' };
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const service = startReseal(['serve'], settings);
after(() => service.end('SIGKILL', 'group'));
const url = await service.listening();

async function json(...args: string[]) {
  const { code, out, err } = await reseal([...args, '--json'], settings);
  assert.equal(code, 0, `${args.join(' ')}: ${out}${err}`);
  return JSON.parse(out);
}
const { account } = await json('account', 'create', 'Acme');

async function placed(csrFile: string, product = 'ssl-dv') {
  const args = ['order', 'place', account.id, product, 'www.example.com', '--csr', csrFile, '--validated'];
  const { order } = await json(...args);
  const { pem: text } = await json('order', 'show', account.id, order.id);
  return { id: order.certificate_id as string, orderId: order.id as string, der: derOf(text) };
}

async function issuerOf(der: Uint8Array): Promise<Buffer> {
  const [, path = ''] = /CA Issuers - URI:http:\/\/[^/]+(\/\S+)/.exec(new X509Certificate(der).infoAccess ?? '') ?? [];
  return Buffer.from(await (await fetch(url + path)).arrayBuffer());
}

async function seen(der: Uint8Array) {
  const { serial } = partsOf(der);
  const issuer = await issuerOf(der);
  const list = await crlOf({ url }, der, issuer);
  const { status } = await ocspStatus({ url }, serial, issuer);
  return { listed: list.revoked.get(serial)?.reason, status, number: list.number };
}

test('a certificate that the operator revokes is revoked in the running service', async () => {
  const one = await placed(file('one.csr', pem(csr({ key: keyPair('p256') }))));
  assert.deepEqual((await seen(one.der)).status, 'good');
  const { certificate } = await json('cert', 'revoke', account.id, one.id, '--reason', 'privilege_withdrawn');
  const { listed, status, number } = await seen(one.der);
  assert.deepEqual([listed, status], ['privilege_withdrawn', 'revoked']);
  assert.equal(certificate.revocation.lists[0].crl_number, number);
  assert.deepEqual((await json('cert', 'status', account.id, one.id)).certificate, certificate);
  const text = (await reseal(['cert', 'status', account.id, one.id], settings)).out;
  assert.match(text, /is revoked: privilege_withdrawn \(requested\)/);
  assert.match(text, new RegExp(`since number ${number} of 2`));
  const { lists } = await json('crl', 'show');
  assert.ok(lists.some((list: { number: number; entries: number }) => list.number === number && list.entries === 1));
  const { order } = await json('order', 'show', account.id, one.orderId);
  assert.equal(order.status, 'revoked');
});

test('one command revokes a compromised key, given as any of its identifiers', async () => {
  const key = newKeyPair('p256');
  const csrFile = file('two.csr', pem(csr({ key })));
  const [first, second] = [await placed(csrFile), await placed(csrFile, 'tls-private')];
  const leaked = file('leaked.pem', key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  assert.equal((await reseal(['cert', 'revoke-key', leaked], settings)).code, 2, 'without --yes');
  assert.equal((await seen(first.der)).status, 'good');
  const { fingerprint, certificates } = await json('cert', 'revoke-key', leaked, '--yes');
  assert.equal(fingerprint, createHash('sha256').update(key.spki).digest('hex'));
  assert.equal(certificates.length, 2);
  for (const { der } of [first, second]) {
    const { listed, status } = await seen(der);
    assert.deepEqual([listed, status], ['key_compromise', 'revoked']);
  }
  const refused = ['order', 'place', account.id, 'ssl-dv', 'www.example.com', '--csr', csrFile, '--validated'];
  assert.match((await reseal(refused, settings)).err, /listed as compromised/);
  const spki = `-----BEGIN PUBLIC KEY-----\n${Buffer.from(key.spki).toString('base64')}\n-----END PUBLIC KEY-----\n`;
  const certificate = new X509Certificate(first.der).toString();
  for (const given of [csrFile, file('spki.pem', spki), file('certificate.pem', certificate), fingerprint]) {
    assert.equal((await json('cert', 'revoke-key', given, '--yes')).fingerprint, fingerprint);
  }
});

test('a replaced CA still publishes the status of what it signed', async () => {
  const before = await placed(file('three.csr', pem(csr({ key: keyPair('p256') }))));
  const { chain, key } = caChain([{}, {}]);
  await json('ca', 'import', '--for', 'public-tls', file('chain.pem', chain.join('')), file('issuing.key', key));
  const after = await placed(file('four.csr', pem(csr({ key: keyPair('p256') }))));
  assert.notDeepEqual(partsOf(before.der).issuer, partsOf(after.der).issuer);
  await service.said(/issuers_changed/);
  for (const { id, der } of [before, after]) {
    assert.equal((await seen(der)).status, 'good');
    await json('cert', 'revoke', account.id, id);
    const { listed, status } = await seen(der);
    assert.deepEqual([listed, status], ['cessation_of_operation', 'revoked']);
  }
});

test('errors come with a remedy', async () => {
  const table: [string[], number, RegExp][] = [
    [['cert', 'revoke', account.id, 'nothing'], 1, /no such certificate/],
    [['cert', 'revoke', account.id, 'nothing', '--reason', 'unspecified'], 2, /superseded, cessation_of_operation/],
    [['cert', 'cancel-revocation', account.id, 'nothing'], 1, /no such certificate/],
    [['cert', 'reschedule', account.id, 'nothing', 'tomorrow'], 1, /RFC 3339/],
    [['cert', 'revoke-key', '/nowhere', '--yes'], 2, /cannot be read/],
    [['cert', 'revoke-key', file('none.pem', 'nothing'), '--yes'], 2, /no key in this file/],
    [['cert', 'status', account.id, 'nothing'], 1, /no such certificate/],
  ];
  for (const [args, code, message] of table) {
    const result = await reseal(args, settings);
    assert.equal(result.code, code, `${args.join(' ')}: ${result.err}`);
    assert.match(result.err, message);
  }
  assert.deepEqual((await json('cert', 'interrupted')).voided, []);
});
