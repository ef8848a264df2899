// The custody of issuers' keys, at the command line beside a running service: rotation, revocation, and a root that goes
// offline, end to end.
import assert from 'node:assert/strict';
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { DerReader } from '../../../src/adapters/der/reader.ts';
import type { Issuer } from '../../../src/domain/certificate/authority.ts';
import { newFolder, startApp, type TestApp } from '../../support/app.ts';
import { caChain } from '../../support/authority.ts';
import { rule } from '../../support/contract.ts';
import { reseal } from '../../support/in-process.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { crlOf, derOf, ocspStatus, partsOf } from '../../support/status.ts';

const DAY = 86_400_000;
const PASSPHRASE = 'correct horse battery staple';
const files = newFolder();
const at = (name: string): string => join(files, name);
writeFileSync(at('passphrase'), `${PASSPHRASE}\n`);
const WITH_PASSPHRASE = ['--passphrase-file', at('passphrase')];

const app = await startApp();
test.after(() => app.stop());
const order = await newOrder(app);

async function run(...args: string[]) {
  const { code, out, err } = await reseal([...args, '--json'], { RESEAL_DATA_DIR: app.folder }, app.now);
  return { code, err, json: JSON.parse(out) };
}
async function done(...args: string[]) {
  const { code, json } = await run(...args);
  assert.equal(code, 0, JSON.stringify(json));
  return json;
}
async function refused(words: RegExp, ...args: string[]): Promise<void> {
  const { code, json } = await run(...args);
  assert.notEqual(code, 0, JSON.stringify(json));
  assert.match(json.error.message, words);
}

const issuersOf = (one: TestApp): Promise<Issuer[]> => one.app.store.issuers.list();
const active = async (): Promise<Issuer> =>
  (await issuersOf(app)).find(({ keyType, purposes }) => keyType === 'p256' && purposes.includes('public-tls')) ??
  assert.fail('no issuer');
const rootOf = async (): Promise<Issuer> =>
  (await issuersOf(app)).find(({ keyType, role }) => keyType === 'p256' && role === 'root') ?? assert.fail('no root');

/** Issues a certificate through the running service, and returns it with its chain. */
async function issue(of: PlacedOrder = order) {
  const answer = await reissue(app, of, body());
  assert.equal(answer.status, 200, answer.text);
  const { id } = answer.body.data.certificate;
  const { pem, ica_pem } = await certificate(app, of, id);
  return { leaf: new X509Certificate(pem), issuer: new X509Certificate(ica_pem) };
}
const isFrom = ({ issuer }: { issuer: X509Certificate }, { certificate: der }: Issuer): boolean =>
  issuer.raw.equals(der);
const serialOf = (der: Uint8Array): string => partsOf(der).serial;
const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

const first = await active();
const early = await issue();
const keyBefore = (await rootOf()).privateKey ?? assert.fail('no key');
const sealedBefore = await sealedKey();

rule('custody 3', 'no certificate is issued by the previous one after the command has answered', async () => {
  assert.ok(isFrom(early, first));
  await refused(/issuers on p256, p384, rsa/, 'ca', 'rotate', 'public-tls');
  const { issuer, previous_id, still_signing } = await done('ca', 'rotate', 'public-tls', '--key-type', 'p256');
  assert.deepEqual([previous_id, still_signing], [first.id, 0]);
  const next = await active();
  assert.equal(next.id, issuer.id);
  assert.equal(next.parentId, first.parentId);
  // The service has not looked at the store since.
  assert.ok(app.issuance.issuers.every(({ id }) => id !== issuer.id));
  const late = await issue();
  assert.ok(isFrom(late, next), 'the store refused what rested on the previous issuer');
  assert.ok(late.leaf.verify(new X509Certificate(next.certificate).publicKey));
});

rule('custody 5', 'A successor has a subject of its own', async () => {
  const subjectOf = (one: Issuer) => new X509Certificate(one.certificate).subject;
  assert.match(subjectOf(first), /CN=Reseal Public TLS P-256$/);
  assert.match(subjectOf(await active()), /CN=Reseal Public TLS P-256 G2$/);
});

rule('custody 4', 'A retired issuer keeps its chain, its CRLs and its OCSP answers', async () => {
  const { serial } = partsOf(early.leaf.raw);
  assert.equal((await ocspStatus(app, serial, first.certificate)).status, 'good');
  assert.equal((await crlOf(app, early.leaf.raw, first.certificate)).revoked.size, 0);
  const served = await fetch(`${app.url}/ca/${first.id}.crt`);
  assert.deepEqual(Buffer.from(await served.arrayBuffer()), Buffer.from(first.certificate));
});

rule('custody 6', 'puts an issuing authority on the list of its root, and stops its use at once', async () => {
  const stopped = await active();
  const { crl_number } = await done('ca', 'revoke', stopped.id, '--reason', 'key_compromise');
  const list = await crlOf(app, stopped.certificate, (await rootOf()).certificate);
  assert.equal(list.number, crl_number);
  assert.deepEqual([...list.revoked.keys()], [serialOf(stopped.certificate)]);
  assert.equal(list.revoked.get(serialOf(stopped.certificate))?.reason, 'key_compromise');
  const next = await issue();
  assert.ok(!isFrom(next, stopped));
  assert.match(next.issuer.subject, /CN=Reseal Public TLS P-256 G3$/);
  const { issuers } = await done('ca', 'list');
  assert.equal(issuers.find(({ id }: Issuer) => id === stopped.id).state, 'revoked');
  await refused(/is revoked already/, 'ca', 'revoke', stopped.id, '--reason', 'superseded');
  await refused(/is a root/, 'ca', 'revoke', (await rootOf()).id, '--reason', 'superseded');
  // Not even by importing it again, with its key.
  const key = createPrivateKey({ key: Buffer.from(stopped.privateKey!), format: 'der', type: 'pkcs8' });
  writeFileSync(at('revoked.key'), key.export({ type: 'pkcs8', format: 'pem' }));
  const chain = [stopped, await rootOf()].map((one) => new X509Certificate(one.certificate).toString()).join('');
  writeFileSync(at('revoked.pem'), chain);
  await refused(/is revoked/, 'ca', 'import', '--for', 'public-tls', at('revoked.pem'), at('revoked.key'));
});

rule('custody 17', 'Keys on SM2 are not exported, and not requested for signing elsewhere', async () => {
  const sm2 = (await issuersOf(app)).find(({ keyType, role }) => keyType === 'sm2' && role === 'root');
  await refused(/SM2/, 'ca', 'root', 'export', sm2!.id, '--out', at('sm2.key'), ...WITH_PASSPHRASE);
  await refused(/SM2/, 'ca', 'csr', '--for', 'public-tls', '--key-type', 'sm2', at('sm2.csr'));
  assert.ok(!existsSync(at('sm2.key')) && !existsSync(at('sm2.csr')));
});

const OFFLINE = ['--key', at('root.key'), '--chain', at('root.key.chain.pem'), ...WITH_PASSPHRASE];

/** The sealed key as its row has it. */
async function sealedKey(): Promise<string> {
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
  const row = database.prepare('select sealed_key from issuer where id = ?').get((await rootOf()).id);
  database.close();
  return String(row?.sealed_key);
}

/** Files of the store that contain a text. */
const filesWith = (text: string | Uint8Array): string[] =>
  readdirSync(app.folder)
    .filter((name) => name.startsWith('reseal.db'))
    .filter((name) => readFileSync(join(app.folder, name)).includes(Buffer.from(text)));

rule('custody 9', 'removes nothing before the file was read back, opened with the passphrase', async () => {
  const root = await rootOf();
  const exporting = ['ca', 'root', 'export', root.id, '--remove-key', '--out'];
  writeFileSync(at('short'), 'too short\n');
  await refused(/has 9 characters/, ...exporting, at('a.key'), '--passphrase-file', at('short'));
  writeFileSync(at('taken.chain.pem'), '');
  const taken = [at('b.key'), '--chain', at('taken.chain.pem')];
  await refused(/taken\.chain\.pem exists already/, ...exporting, ...taken, ...WITH_PASSPHRASE);
  assert.ok(!existsSync(at('a.key')) && !existsSync(at('b.key')), 'no key is left where none was removed');
  assert.equal((await rootOf()).keyPlace, 'store');
  assert.deepEqual(filesWith(sealedBefore.slice(0, 60)), ['reseal.db']);
});

rule('custody 10', 'neither the store nor its log holds the key, sealed or not', async () => {
  const backup = join(newFolder(), 'before.db');
  await done('backup', backup);
  const exported = await done(
    'ca',
    'root',
    'export',
    (await rootOf()).id,
    '--out',
    at('root.key'),
    '--remove-key',
    ...WITH_PASSPHRASE,
  );
  assert.equal(exported.removed, true);
  assert.deepEqual(
    exported.backups.map(({ file }: { file: string }) => file),
    [backup],
  );
  assert.ok(exported.left.length > 0);
  const root = await rootOf();
  assert.deepEqual([root.keyPlace, root.privateKey], ['offline', null]);
  // Any part of it: a page holds at least some hundred bytes of a value.
  for (let from = 0; from + 48 <= sealedBefore.length; from += 24) {
    assert.deepEqual(filesWith(sealedBefore.slice(from, from + 48)), []);
  }
  const scalar = keyBefore.slice(-100, -70);
  for (const form of [Buffer.from(keyBefore).toString('base64').slice(40, 120), scalar]) {
    assert.deepEqual(filesWith(form), []);
  }
  assert.ok(!app.output.includes(Buffer.from(keyBefore).toString('base64').slice(40, 80)));
  await refused(/has no root key/, 'ca', 'root', 'export', root.id, '--out', at('c.key'), ...WITH_PASSPHRASE);
});

rule('custody 8', 'writes the key as PKCS#8 under a passphrase, with scrypt and AES-256', async () => {
  const pem = readFileSync(at('root.key'), 'utf8');
  assert.match(pem, /^-----BEGIN ENCRYPTED PRIVATE KEY-----\n/);
  const opened = createPrivateKey({ key: pem, passphrase: PASSPHRASE });
  assert.deepEqual(opened.export({ type: 'pkcs8', format: 'der' }), Buffer.from(keyBefore));
  assert.throws(() => createPrivateKey({ key: pem, passphrase: `${PASSPHRASE}.` }));
  const pbes2 = new DerReader(derOf(pem)).sequence().sequence();
  assert.equal(pbes2.oid(), '1.2.840.113549.1.5.13');
  const schemes = pbes2.sequence();
  const kdf = schemes.sequence();
  assert.equal(kdf.oid(), '1.3.6.1.4.1.11591.4.11');
  const parameters = kdf.sequence();
  assert.equal(parameters.octetString().length, 32);
  assert.deepEqual([...parameters.integer()], [0x40, 0]);
  assert.equal(schemes.sequence().oid(), '2.16.840.1.101.3.4.1.42');
});

rule('custody 11', 'makes neither another root of its key type nor issuers below it by itself', async () => {
  const before = (await issuersOf(app)).length;
  await app.issuance.sweep();
  const signing = await newOrder(app, { product: 'ssl-private-dv', commonName: 'www.example.com' }).catch(() => null);
  await refused(/the key of the root .* is not here/, 'ca', 'rotate', 'public-tls', '--key-type', 'p256');
  await assert.doesNotReject(app.issuance.makeIssuer({ purpose: 'code-signing', keyType: 'p256' }));
  assert.equal((await issuersOf(app)).length, before, String(signing?.id));
  assert.ok((await issue()).leaf, 'what was made before goes on');
});

rule('custody 1', 'the new issuer signs for these purposes at once', async () => {
  const requested = await done('ca', 'csr', '--for', 'public-tls', at('new.csr'));
  assert.match(requested.request.subject, /Reseal Public TLS P-256 G4/);
  const signed = await done('ca', 'root', 'sign', at('new.csr'), '--out', at('new.pem'), ...OFFLINE);
  // Their extended key usages are the same.
  assert.deepEqual(signed.allows, ['public-tls', 'private-tls']);
  const { issuer } = await done('ca', 'install', at('new.pem'));
  assert.equal(issuer.id, requested.request.id);
  const next = await active();
  assert.deepEqual([next.id, next.parentId, next.purposes], [issuer.id, (await rootOf()).id, ['public-tls']]);
  assert.ok(isFrom(await issue(), next));
  const served = await fetch(
    new X509Certificate(next.certificate).infoAccess!.match(/\/ca\/\S+/)![0].replace(/^/, app.url),
  );
  assert.equal(served.status, 200, 'the address of its root was in the request');
});

rule('custody 2', 'refuses a chain without a certificate over a key that waits for one', async () => {
  const before = await issuersOf(app);
  await refused(/one of the 0 keys/, 'ca', 'install', at('new.pem'));
  await done('ca', 'csr', '--for', 'private-tls', at('other.csr'));
  writeFileSync(at('foreign.pem'), caChain([{}, {}], app.now()).chain.join(''));
  await refused(/one of the 1 keys/, 'ca', 'install', at('foreign.pem'));
  assert.deepEqual(await issuersOf(app), before);
  await refused(/exists already/, 'ca', 'csr', '--for', 'private-tls', at('other.csr'));
});

/** Made below the root while its key was here. */
const oldOne = async (): Promise<Issuer> =>
  (await issuersOf(app)).find(({ certificate: der }) => /G3$/.test(new X509Certificate(der).subject)) ??
  assert.fail('no G3');

rule('custody 7', 'does nothing unless a file is named for what has to be signed', async () => {
  const old = await oldOne();
  const target = await active();
  await refused(/is offline/, 'ca', 'revoke', target.id, '--reason', 'superseded');
  assert.equal((await active()).id, target.id);
  const revoke = ['ca', 'revoke', old.id, '--reason', 'superseded', '--out', at('list.json')];
  assert.equal((await done(...revoke)).request, at('list.json'));
  const { json } = await run('doctor');
  const finding = json.findings.find(({ check }: { check: string }) => check === 'revocation');
  assert.match(finding.text, /is not on the list of the offline root/);
});

rule('custody 12', 'need the exported key and chain only: no store, no settings, no network', async () => {
  const signCrl = ['ca', 'root', 'sign-crl', at('list.json'), '--out', at('root.crl'), ...OFFLINE, '--json'];
  // Settings that stop every command that reads them.
  const { code, out, err } = await reseal(signCrl, { RESEAL_PORT: 'nonsense', RESEAL_DATA_DIR: '/nowhere' }, app.now);
  assert.equal(code, 0, out);
  assert.equal(err, '');
  assert.equal(JSON.parse(out).entries, 2);
  const record = JSON.parse(readFileSync(at('root.crl.ceremony.json'), 'utf8'));
  assert.equal(record.details.output_result_sha256, sha256(readFileSync(at('root.crl'))));
  const { json } = await run('ca', 'root', 'sign-crl', at('new.csr'), '--out', at('x.crl'), ...OFFLINE);
  assert.match(json.error.message, /not a request for a CRL, or was altered/);
});

rule('custody 13', 'refuses a list with a number that is not above the published one', async () => {
  const root = await rootOf();
  await done('ca', 'root', 'crl-request', root.id, at('again.json'));
  await done('crl', 'install', at('root.crl'));
  const list = await crlOf(app, first.certificate, root.certificate);
  assert.ok(list.revoked.has(serialOf((await oldOne()).certificate)));
  await refused(/is published already/, 'crl', 'install', at('root.crl'));
  // A list of an earlier request lacks what was revoked since.
  app.advance(60_000);
  await done('ca', 'root', 'crl-request', root.id, at('early.json'));
  await done('ca', 'root', 'sign-crl', at('early.json'), '--out', at('early.crl'), ...OFFLINE);
  await done('ca', 'revoke', first.id, '--reason', 'superseded', '--out', at('late.json'));
  await refused(/lacks what was revoked since/, 'crl', 'install', at('early.crl'));
  await done('ca', 'root', 'sign-crl', at('late.json'), '--out', at('late.crl'), '--days', '90', ...OFFLINE);
  app.advance(60_000);
  await done('crl', 'install', at('late.crl'));
  assert.equal((await crlOf(app, first.certificate, root.certificate)).revoked.size, 3);
});

rule('custody 15', 'with the SHA-256 of inputs and outputs; `ca ceremonies` lists them', async () => {
  const { ceremonies } = await done('ca', 'ceremonies');
  const actions = ceremonies.map(({ action }: { action: string }) => action);
  assert.equal(actions[0], 'root:crl_installed');
  for (const action of ['authority:rotated', 'root:exported', 'root:key_removed', 'authority:installed']) {
    assert.ok(actions.includes(action), action);
  }
  const installed = ceremonies.find(({ action }: { action: string }) => action === 'authority:installed');
  assert.equal(installed.details.input_chain_sha256, sha256(readFileSync(at('new.pem'))));
  const signed = JSON.parse(readFileSync(at('new.pem.ceremony.json'), 'utf8'));
  assert.equal(signed.details.output_result_sha256, installed.details.input_chain_sha256);
  const exported = ceremonies.find(({ action }: { action: string }) => action === 'root:exported');
  assert.equal(exported.details.output_key_sha256, sha256(readFileSync(at('root.key'))));
  assert.match(exported.actor, /^cli:/);
});

rule('custody 16', 'is served as an alternate chain; the chains that are served stay as they are', async () => {
  const target = await active();
  const { chain } = caChain([{}, { certifies: target.certificate }], app.now());
  writeFileSync(at('cross.pem'), chain.join(''));
  const before = await issue();
  const { url } = await done('ca', 'cross-sign', target.id, at('cross.pem'));
  const served = await fetch(url.replace(/^http:\/\/[^/]+/, app.url));
  assert.equal(served.status, 200);
  const [alternate, other] = (await served.text()).match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];
  assert.ok(new X509Certificate(alternate!).verify(new X509Certificate(other!).publicKey));
  assert.ok(before.leaf.verify(new X509Certificate(alternate!).publicKey), 'leaves verify through it');
  assert.ok((await issue()).issuer.raw.equals(before.issuer.raw));
  await refused(/no other certificate over the key/, 'ca', 'cross-sign', first.id, at('cross.pem'));
  assert.equal((await fetch(`${app.url}/ca/${target.id}.${'0'.repeat(64)}.pem`)).status, 404);
});

rule('custody 14', 'ask for the next list of an offline root 30 days before the last one expires', async () => {
  const revocation = async () => {
    const { json } = await run('doctor');
    return json.findings.find(({ check }: { check: string }) => check === 'revocation');
  };
  const root = await rootOf();
  const { body: text } = { body: await (await fetch(`${app.url}/metrics`)).text() };
  const [, due = ''] =
    new RegExp(`reseal_offline_crl_due_timestamp_seconds\\{issuer="${root.id}"\\} (\\S+)`).exec(text) ?? [];
  const head = await app.app.store.crls.head({ issuerId: root.id, shard: 0 });
  assert.equal(Number(due) * 1000, head!.nextUpdate - 30 * DAY);
  app.advance(59 * DAY);
  await app.issuance.revocationChores.find(({ name }) => name === 'publish_crls')?.run();
  assert.notEqual((await revocation()).state, 'problem');
  app.advance(2 * DAY);
  await app.issuance.revocationChores.find(({ name }) => name === 'publish_crls')?.run();
  const asked = await revocation();
  assert.equal(asked.state, 'warning');
  assert.match(asked.text, new RegExp(`the list of the offline root ${root.id} expires on `));
  assert.match(asked.remedy, /reseal ca root crl-request/);
});
