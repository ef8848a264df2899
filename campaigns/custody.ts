// A root that goes offline, end to end, with openssl as the verifier: it opens the exported key, and it judges chains with the
// lists of every authority (-crl_check_all), before and after an authority is revoked by a list that was signed offline.
import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApp } from '../test/support/app.ts';
import { reseal } from '../test/support/in-process.ts';
import { body, certificate, csrFor, newOrder, reissue } from '../test/support/orders.ts';
import { fetchCrl } from '../test/support/status.ts';
import type { Campaign } from './campaign.ts';

const PASSPHRASE = 'correct horse battery staple';
const KINDS = {
  p256: { key: 'p256', sign_hash: 'sha256' },
  p384: { key: 'p384', sign_hash: 'sha384' },
  rsa: { key: 'rsa2048', sign_hash: 'sha256' },
} as const;
type Kind = keyof typeof KINDS;

export const custody: Campaign = {
  about: 'an offline root end to end, N times each on P-256, P-384 and RSA, judged by openssl',
  defaultN: 1,
  async run(n, print) {
    const version = spawnSync('openssl', ['version'], { encoding: 'utf8' });
    if (version.error) {
      print('openssl: not installed, not asked');
      return [];
    }
    print(version.stdout.trim());
    const broken: string[] = [];
    for (let round = 1; round <= n; round += 1) {
      for (const kind of Object.keys(KINDS) as Kind[]) {
        const faults = await takeOffline(kind, print);
        broken.push(...faults.map((fault) => `${kind}: ${fault}`));
      }
    }
    return broken;
  },
};

async function takeOffline(kind: Kind, print: (line: string) => void): Promise<string[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-custody-'));
  const at = (name: string): string => join(folder.path, name);
  const faults: string[] = [];
  await using app = await startApp();
  const { key, sign_hash } = KINDS[kind];
  const order = await newOrder(app, { key, signHash: sign_hash });
  writeFileSync(at('passphrase'), `${PASSPHRASE}\n`);
  const done = async (...args: string[]) => {
    const { code, out } = await reseal([...args, '--json'], { RESEAL_DATA_DIR: app.folder }, app.now);
    if (code !== 0) throw new Error(`${args.join(' ')}: ${out}`);
    return JSON.parse(out);
  };
  const issue = async () => {
    const answer = await reissue(app, order, body({ csr: csrFor(key), sign_hash }));
    if (answer.status !== 200) throw new Error(answer.text);
    return await certificate(app, order, answer.body.data.certificate.id);
  };
  /** What openssl says about a leaf with the lists that the service serves for it and for its issuer. */
  const verify = async ({ pem, ica_pem, root_pem }: Awaited<ReturnType<typeof issue>>): Promise<string> => {
    writeFileSync(at('leaf.pem'), pem);
    writeFileSync(at('ica.pem'), ica_pem);
    writeFileSync(at('root.pem'), root_pem);
    const lists: string[] = [];
    for (const [index, one] of [pem, ica_pem].entries()) {
      const { der } = await fetchCrl(app, new X509Certificate(one).raw);
      writeFileSync(at(`${index}.crl`), der);
      lists.push('-CRLfile', at(`${index}.crl`));
    }
    const when = String(Math.floor(app.now() / 1000));
    const options = ['-x509_strict', '-crl_check_all', '-extended_crl', '-attime', when, ...lists];
    const files = ['-CAfile', at('root.pem'), '-untrusted', at('ica.pem'), at('leaf.pem')];
    const { stdout, stderr } = spawnSync('openssl', ['verify', ...options, ...files], { encoding: 'utf8' });
    return `${stdout}${stderr}`;
  };
  const expect = (what: string, said: string, words: RegExp) => {
    if (!words.test(said)) faults.push(`${what}: ${said}`);
    else print(`${kind}: ${what}: ${words.exec(said)?.[0]}`);
  };
  const before = await issue();
  const issuers = await app.app.store.issuers.list();
  const root = issuers.find((one) => one.role === 'root' && one.keyType === kind);
  const old = issuers.find((one) => one.keyType === kind && one.purposes.includes('public-tls'));
  if (!root || !old) throw new Error('no issuers');
  expect('before', await verify(before), /OK$/m);
  const phrase = ['--passphrase-file', at('passphrase')];
  await done('ca', 'root', 'export', root.id, '--out', at('root.key'), '--remove-key', ...phrase);
  const opened = spawnSync('openssl', [
    'pkey',
    '-in',
    at('root.key'),
    '-passin',
    `file:${at('passphrase')}`,
    '-pubout',
  ]);
  const own = new X509Certificate(root.certificate).publicKey.export({ type: 'spki', format: 'pem' });
  if (opened.stdout.toString() !== own) faults.push(`openssl does not open the key: ${opened.stderr}`);
  else print(`${kind}: openssl opens ${readFileSync(at('root.key'), 'utf8').length} bytes of PKCS#8`);
  expect('the root is offline', await verify(await issue()), /OK$/m);
  await done('ca', 'csr', '--for', 'public-tls', '--key-type', kind, at('new.csr'));
  const csr = spawnSync('openssl', ['req', '-in', at('new.csr'), '-noout', '-verify'], { encoding: 'utf8' });
  expect('the request', `${csr.stdout}${csr.stderr}`, /verify OK/);
  const offline = ['--key', at('root.key'), '--chain', at('root.key.chain.pem'), ...phrase];
  await done('ca', 'root', 'sign', at('new.csr'), '--out', at('new.pem'), ...offline);
  await done('ca', 'install', at('new.pem'));
  const after = await issue();
  if (after.ica_pem === before.ica_pem) faults.push('the new authority does not sign');
  expect('a new authority', await verify(after), /OK$/m);
  await done('ca', 'revoke', old.id, '--reason', 'superseded', '--out', at('list.json'));
  await done('ca', 'root', 'sign-crl', at('list.json'), '--out', at('root.crl'), ...offline);
  await done('crl', 'install', at('root.crl'));
  expect('under the revoked one', await verify(before), /certificate revoked/);
  expect('under the new one', await verify(after), /OK$/m);
  return faults;
}
