// Certificates against independent verifiers: Node's OpenSSL, a JavaScript library and, where installed, openssl and GnuTLS
// verify every supported combination of key and digest.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { openAuthority } from '../../../src/adapters/ca/authority.ts';
import { ensureRoots, makeIssuer } from '../../../src/adapters/ca/issuers.ts';
import { lint } from '../../../src/adapters/ca/lint.ts';
import { issuerExtensions, keyIdOf, leafExtensions, purposeExtensions } from '../../../src/adapters/ca/profiles.ts';
import { readPublicKey } from '../../../src/adapters/ca/public-key.ts';
import { distinguishedName, SIGNATURE_ALGORITHMS, toBeSigned } from '../../../src/adapters/ca/to-be-signed.ts';
import { PRODUCTS } from '../../../src/domain/catalog/products.ts';
import {
  type CertificateContent,
  type Issuer,
  PURPOSES,
  purposeOf,
} from '../../../src/domain/certificate/authority.ts';
import { pem } from '../../../src/domain/certificate/pem.ts';
import { idMaker } from '../../../src/domain/ids.ts';
import { newFolder, startApp } from '../../support/app.ts';
import { HASHES, keyPair } from '../../support/csr.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

/** On the real clock, because some tools take no other time. */
const NOW = Math.floor(Date.now() / 1000) * 1000;
const authority = await (async () => {
  const made: Issuer[] = [];
  const issuers = {
    list: async () => made,
    claimRoot: async (root: Issuer) => void made.push(root),
    claimSlot: async (issuer: Issuer) => void made.push(issuer),
  };
  const transaction = (work: (to: { issuers: typeof issuers }) => Promise<unknown>) => work({ issuers });
  const names = {
    country: 'XX',
    organization: 'Reseal',
    rootYears: 20,
    issuingYears: 10,
    pkiUrl: 'http://pki.example.com',
  };
  const tools = { store: { issuers, transaction } as never, now: () => NOW, newId: idMaker(() => NOW, randomBytes) };
  await ensureRoots(tools, names, ['p256', 'p384', 'rsa']);
  for (const keyType of ['p384', 'rsa'] as const) await makeIssuer(tools, names, { purpose: 'public-tls', keyType });
  for (const purpose of PURPOSES) await makeIssuer(tools, names, { purpose, keyType: 'p256' });
  return openAuthority(made, names.pkiUrl);
})();

const DAY = 86_400_000;
const KINDS = ['p256', 'p384', 'p521', 'rsa2048', 'rsa4096'] as const;
const has = (program: string): boolean => {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return program === 'openssl' && !!execFileSync('which', ['openssl'], { encoding: 'utf8' });
  }
};

function contentFor(
  kind: (typeof KINDS)[number],
  signHash: (typeof HASHES)[number],
  change: Partial<CertificateContent> = {},
) {
  const publicKey = readPublicKey(keyPair(kind).spki);
  const purpose = purposeOf({ kind: 'ssl', trust: 'public', ...change });
  const issuerId = authority.issuerFor(purpose, publicKey.type, signHash, NOW + 199 * DAY)?.id ?? assert.fail();
  const names = ['www.example.com', '*.example.com', 'xn--fsq.example.com'];
  const content: CertificateContent = {
    role: 'single',
    kind: 'ssl',
    trust: 'public',
    commonName: 'www.example.com',
    names,
    publicKey,
    signHash,
    issuerId,
    notBefore: NOW,
    notAfter: NOW + 199 * DAY - 1000,
    maxDays: 199,
    subject: null,
    isShortLived: false,
    ...change,
  };
  return content;
}

async function issue(content: CertificateContent) {
  const { toBeSigned: bytes, serial } = authority.prepare(content);
  const der = await authority.sign(content.issuerId, content.signHash, bytes);
  const [issuing, root] = await authority.chainOf(content.issuerId);
  return { der, serial, issuing: issuing!, root: root! };
}

x509.cryptoProvider.set(webcrypto as never);

for (const kind of KINDS) {
  for (const signHash of HASHES) {
    test(`a ${kind} key signed with ${signHash}: chain, names and digest, by two independent parsers`, async () => {
      const { der, serial, issuing, root } = await issue(contentFor(kind, signHash));
      const [leaf, middle, top] = [der, issuing, root].map((one) => new X509Certificate(one));
      assert.ok(leaf && middle && top);
      assert.ok(
        leaf.checkIssued(middle) &&
          leaf.verify(middle.publicKey) &&
          middle.verify(top.publicKey) &&
          top.verify(top.publicKey),
      );
      assert.equal(leaf.serialNumber.toLowerCase(), serial);
      assert.equal(leaf.checkHost('www.example.com'), 'www.example.com');
      assert.equal(leaf.checkHost('api.example.com'), '*.example.com');
      assert.equal(leaf.checkHost('example.org'), undefined);
      assert.equal(leaf.ca, false);
      const other = new x509.X509Certificate(new Uint8Array(der));
      assert.equal((other.signatureAlgorithm.hash as { name: string }).name, `SHA-${signHash.slice(3)}`);
      assert.ok(
        await other.verify({
          publicKey: new x509.X509Certificate(new Uint8Array(issuing)).publicKey,
          signatureOnly: true,
        }),
      );
      const chain = await new x509.X509ChainBuilder({
        certificates: [issuing, root].map((one) => new x509.X509Certificate(new Uint8Array(one))),
      }).build(other);
      assert.equal(chain.length, 3);
      const alternative = other.getExtension(x509.SubjectAlternativeNameExtension);
      assert.deepEqual(
        alternative?.names.items.map(({ value }) => value),
        contentFor(kind, signHash).names,
      );
    });
  }
}

test('openssl and GnuTLS, where installed, accept leaf, chain and names of every combination', async (context) => {
  const oracles = ['openssl', 'certtool'].filter(has);
  context.diagnostic(`present: ${oracles.join(', ') || 'neither; the test above is complete without them'}`);
  for (const kind of KINDS) {
    for (const signHash of HASHES) {
      const { der, issuing, root } = await issue(contentFor(kind, signHash));
      const folder = newFolder();
      const write = (name: string, ...parts: Uint8Array[]) => {
        writeFileSync(join(folder, name), parts.map((one) => pem('CERTIFICATE', one)).join(''));
        return join(folder, name);
      };
      const [leaf, middle, top] = [write('leaf', der), write('middle', issuing), write('top', root)];
      if (oracles.includes('openssl')) {
        const flags = ['-x509_strict', '-purpose', 'sslserver', '-verify_hostname', 'www.example.com'];
        execFileSync('openssl', ['verify', ...flags, '-CAfile', top, '-untrusted', middle, leaf], { stdio: 'pipe' });
      }
      if (oracles.includes('certtool')) {
        const bundle = write('bundle', der, issuing);
        execFileSync(
          'certtool',
          ['--verify', '--verify-hostname', 'www.example.com', '--load-ca-certificate', top, '--infile', bundle],
          { stdio: 'pipe' },
        );
      }
    }
  }
});

test('each kind of product has its extended key usages, and no others', async () => {
  const purposes: Record<string, string[]> = {
    'ssl public': ['1.3.6.1.5.5.7.3.1'],
    'ssl private': ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'],
    'client_auth private': ['1.3.6.1.5.5.7.3.2'],
    'code_signing private': ['1.3.6.1.5.5.7.3.3'],
    'document_signing private': ['1.3.6.1.5.5.7.3.36', '1.3.6.1.4.1.311.10.3.12'],
  };
  for (const { kind, trust, maxValidityDays } of PRODUCTS) {
    const names = kind === 'ssl' ? ['www.example.com'] : [];
    const content = contentFor('p256', 'sha256', { kind, trust, names, maxDays: maxValidityDays });
    const { der, issuing } = await issue(content);
    for (const one of [der, issuing]) assert.deepEqual(new X509Certificate(one).keyUsage, purposes[`${kind} ${trust}`]);
    const other = contentFor('p256', 'sha256', { kind: kind === 'ssl' ? 'code_signing' : 'ssl' });
    assert.throws(() => authority.prepare({ ...content, issuerId: other.issuerId }), /may not sign for this purpose/);
  }
});

test('a common name of more than 64 characters is only in the subjectAltName, which is then critical', async () => {
  const commonName = `${'a'.repeat(60)}.example.com`;
  const { der } = await issue(contentFor('p256', 'sha256', { commonName, names: [commonName] }));
  const certificate = new x509.X509Certificate(new Uint8Array(der));
  assert.equal(certificate.subject, '');
  assert.equal(certificate.getExtension(x509.SubjectAlternativeNameExtension)?.critical, true);
});

test('status URLs are plain HTTP, and the serial number determines the CRL shard', async () => {
  const { der, serial } = await issue(contentFor('p256', 'sha256'));
  const text = new X509Certificate(der).infoAccess ?? '';
  assert.match(text, /OCSP - URI:http:\/\/[^\n]+\/ocsp/);
  assert.match(text, /CA Issuers - URI:http:\/\/[^\n]+\/ca\/[0-9a-z]{26}\.crt/);
  const crl = new x509.X509Certificate(new Uint8Array(der)).getExtension(x509.CRLDistributionPointsExtension);
  const [address] =
    crl?.distributionPoints[0]?.distributionPoint?.fullName?.map(
      ({ uniformResourceIdentifier }) => uniformResourceIdentifier,
    ) ?? [];
  assert.equal(address?.split('/').at(-1), `${Number.parseInt(serial.slice(-2), 16) % 16}.crl`);
});

test('a certificate that differs from the plan is rejected before it is signed', () => {
  const content = contentFor('p256', 'sha256');
  const { spki } = content.publicKey;
  const algorithm = SIGNATURE_ALGORITHMS.p256.sha256!;
  const issuer = distinguishedName({ commonName: 'Issuer' });
  const issuerKeyId = keyIdOf(spki);
  const { names, commonName, notBefore, notAfter } = content;
  const decided = {
    algorithm,
    issuer,
    notBefore,
    notAfter,
    maxDays: 199,
    issuerNotBefore: notBefore,
    issuerNotAfter: notAfter,
    commonName,
    names,
    spki,
    issuerKeyId,
    nameConstraints: [],
    isWithinPurposes: true,
    subject: null,
    isShortLived: false,
  };
  const urls = { issuerCertificate: 'http://x/c', crl: 'http://x/l', ocsp: 'http://x/o' };
  const profile = {
    role: 'single',
    purpose: 'public-tls',
    purposeExtensions: purposeExtensions(['1.3.6.1.5.5.7.3.1'], []),
    isRsa: false,
    names,
    hasSubject: true,
    isShortLived: false,
    spki,
    issuer: issuerExtensions(issuerKeyId, urls),
  } as const;
  const right = {
    serial: new Uint8Array(16).fill(0x41),
    algorithm,
    issuer,
    notBefore,
    notAfter,
    subject: distinguishedName({ commonName: 'www.example.com' }),
    spki,
    extensions: leafExtensions(profile),
  };
  assert.deepEqual(lint(toBeSigned(right), decided), []);
  const other = readPublicKey(keyPair('p384').spki).spki;
  const extensions = leafExtensions(profile);
  const wrong: Record<string, Partial<typeof right>> = {
    'a short serial number': { serial: Uint8Array.of(1, 2, 3) },
    'a long serial number': { serial: new Uint8Array(20).fill(0xff) },
    'another algorithm': { algorithm: SIGNATURE_ALGORITHMS.p384.sha384! },
    'another issuer': { issuer: distinguishedName({ commonName: 'Other' }) },
    'another beginning': { notBefore: notBefore + 1000 },
    'a day more': { notAfter: notAfter + DAY },
    'another key': { spki: other },
    'no subject, names not critical': { subject: distinguishedName({}) },
    'fewer names': { extensions: leafExtensions({ ...profile, names: names.slice(1) }) },
    'more names': { extensions: leafExtensions({ ...profile, names: [...names, 'evil.example'] }) },
    'names critical with a subject': { extensions: leafExtensions({ ...profile, hasSubject: false }) },
    'an extension twice': { extensions: [...extensions, extensions[0]!] },
    'another authority key': {
      extensions: leafExtensions({ ...profile, issuer: issuerExtensions(keyIdOf(other), urls) }),
    },
    'no pointers to its status': { extensions: leafExtensions({ ...profile, isShortLived: true }) },
    'no extensions': { extensions: [] },
  };
  for (const [fault, change] of Object.entries(wrong)) {
    assert.notDeepEqual(lint(toBeSigned({ ...right, ...change }), decided), [], fault);
  }
  assert.notDeepEqual(
    lint(toBeSigned(right), { ...decided, issuerNotAfter: notAfter - 1000 }),
    [],
    'outlives its issuer',
  );
  assert.deepEqual(lint(toBeSigned(right), { ...decided, issuerNotBefore: notBefore + 1000 }), [
    'begins before its issuer',
  ]);
  assert.notDeepEqual(lint(toBeSigned(right), { ...decided, maxDays: 198 }), [], 'longer than the product allows');
  assert.notDeepEqual(
    lint(toBeSigned(right), { ...decided, commonName: 'other.example.com' }),
    [],
    'a common name other than decided',
  );
  const nameConstraints = [{ permitted: [], excluded: [{ form: 'dns', base: 'example.com' }] }] as const;
  assert.notDeepEqual(lint(toBeSigned(right), { ...decided, nameConstraints }), [], 'names that its issuer excludes');
  assert.notDeepEqual(lint(toBeSigned(right), { ...decided, isWithinPurposes: false }), [], 'another purpose');
  assert.notDeepEqual(lint(toBeSigned(right).subarray(1), decided), [], 'truncated');
  const subject = { country: 'DE', organization: 'Acme', organizationalUnit: null };
  const holder = { ...decided, names: [], commonName: 'Jane', subject };
  const ofHolder = (fields: object) => ({
    ...right,
    subject: distinguishedName({ ...fields, commonName: 'Jane' }),
    extensions: leafExtensions({ ...profile, names: [] }),
  });
  assert.deepEqual(lint(toBeSigned(ofHolder(subject)), holder), []);
  for (const other of [{}, { ...subject, organization: 'Other' }, { ...subject, organizationalUnit: 'Sales' }]) {
    assert.deepEqual(lint(toBeSigned(ofHolder(other)), holder), ['subject differs']);
  }
});

test('issuer certificates are served at the URLs in certificates', async () => {
  for (const { id, certificate } of app.issuance.issuers) {
    const answer = await fetch(`${app.url}/ca/${id}.crt`);
    assert.equal(answer.headers.get('content-type'), 'application/pkix-cert');
    assert.deepEqual(Buffer.from(await answer.arrayBuffer()), Buffer.from(certificate));
  }
  for (const path of ['/ca/nobody.crt', '/ca/..crt', '/ca/x'])
    assert.equal((await app.call('GET', path)).status, 404, path);
});

test('later starts find the same issuers, and their private keys are sealed at rest', async () => {
  const before = app.issuance.issuers.map(({ id }) => id);
  assert.equal(before.length, 13);
  const keys = app.issuance.issuers.map(({ privateKey }) => Buffer.from(privateKey ?? []));
  await app.stop();
  const { readFileSync } = await import('node:fs');
  const database = readFileSync(join(app.folder, 'reseal.db'));
  for (const key of keys) {
    assert.ok(key.length > 100);
    for (const needle of [
      key,
      key.subarray(-40),
      key.toString('base64').slice(0, 60),
      key.toString('hex').slice(0, 60),
    ]) {
      assert.equal(database.includes(needle), false);
    }
  }
  await app.start({});
  assert.deepEqual(
    app.issuance.issuers.map(({ id }) => id),
    before,
  );
});
