import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import { readCsr } from '../../../src/adapters/ca/csr.ts';
import { requireStrongKey } from '../../../src/adapters/ca/public-key.ts';
import { DerReader } from '../../../src/adapters/der/reader.ts';
import { Refusal } from '../../../src/domain/errors.ts';
import { csr, HASHES, KEY_KINDS, keyPair, newKeyPair, type Parts, pem, pssAlgorithm } from '../../support/csr.ts';
import * as tables from '../../support/wrong-csrs.ts';

/** Returns the reason. Fails unless the error is an invalid_csr refusal in both languages, with a remedy. */
function reasonOf(read: () => unknown, what: string): string {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof Refusal, `${what}: ${error}`);
    assert.equal(error.code, 'invalid_csr', what);
    assert.equal(error.facts.field, 'certificate.csr', what);
    const { en = '', zh = '' } = error.facts.reason ?? {};
    assert.match(en, /: openssl (req|genpkey) -/, what);
    assert.match(zh, /[\u4e00-\u9fff].*：openssl (req|genpkey) -/, what);
    return en;
  }
  return assert.fail(`${what}: accepted`);
}

const bare = (der: Uint8Array): string => Buffer.from(der).toString('base64');

test('every kind of key with every hash is read, and only the key is used', () => {
  for (const kind of KEY_KINDS) {
    for (const hash of HASHES) {
      const key = keyPair(kind);
      const der = csr({ key, hash });
      const read = readCsr(pem(der));
      assert.deepEqual(Object.keys(read), ['der', 'publicKey']);
      assert.deepEqual(read.der, der);
      assert.deepEqual(read.publicKey.spki, key.spki);
      assert.equal(read.publicKey.type, kind.startsWith('rsa') ? 'rsa' : kind);
      assert.equal(read.publicKey.bits, Number(kind.replace(/\D+/, '')));
      assert.match(read.publicKey.fingerprint, /^[0-9a-f]{64}$/);
      requireStrongKey(read.publicKey);
    }
  }
  for (const [hash, salt] of [
    ['sha256', 32],
    ['sha384', 48],
    ['sha512', 64],
  ] as const) {
    const key = keyPair('rsa2048');
    const der = csr({ key, hash, pssSalt: salt, algorithm: pssAlgorithm({ hash, salt }) });
    assert.deepEqual(readCsr(pem(der)).publicKey.spki, key.spki);
  }
});

const TABLES: readonly (readonly [RegExp, tables.Table])[] = [
  [/not in the form of RFC 2986/, tables.BAD_FORMS],
  [/^In the subject, /, tables.BAD_SUBJECTS],
  [/^The public key cannot be used/, tables.BAD_KEYS],
  [/point of the public key is compressed, at infinity or of the wrong length/, tables.BAD_POINTS],
  [/point of the public key is not on its curve/, tables.OFF_CURVE],
  [/modulus of the RSA key is even/, tables.EVEN_MODULI],
  [/^The public exponent/, tables.BAD_EXPONENTS],
  [/signed with SHA-1 or MD5/, tables.BROKEN_HASHES],
  [/must be signed with RSA/, tables.BAD_ALGORITHMS],
  [/does not verify/, tables.BAD_SIGNATURES],
];

test('malformed, unsafe or wrongly signed requests are refused, each with its own reason', (t) => {
  let count = 0;
  for (const [reason, table] of TABLES) {
    for (const [what, parts] of Object.entries(table)) {
      assert.match(
        reasonOf(() => readCsr(pem(csr(parts))), what),
        reason,
        what,
      );
      count += 1;
    }
  }
  t.diagnostic(`${count} wrong requests`);
});

test('unusual but valid requests are read', () => {
  for (const [what, parts] of Object.entries(tables.VALID_CSRS)) {
    assert.deepEqual(readCsr(pem(csr(parts))).publicKey.spki, keyPair('p256').spki, what);
  }
});

test('a PSS signature without its leading zero is refused, though OpenSSL would verify it', () => {
  const parts: Parts = { key: keyPair('rsa2048'), pssSalt: 32, algorithm: pssAlgorithm({}) };
  // The salt is random: one signature in 256 begins with a zero byte.
  for (let isShorter = false; !isShorter; ) {
    const signature = (right: Uint8Array) => {
      isShorter = right[0] === 0;
      return right.subarray(1);
    };
    assert.match(
      reasonOf(() => readCsr(pem(csr({ ...parts, signature }))), 'PSS'),
      /does not verify/,
    );
  }
});

const RIGHT = csr();
const INSIDE = new DerReader(RIGHT).sequence();
const SIGNED = INSIDE.any();
const CONTENT = [...SIGNED, ...INSIDE.any(), ...INSIDE.any()];
const WHOLE: Readonly<Record<string, Uint8Array | string>> = {
  nothing: 'AA==',
  'an empty list': bare(Uint8Array.of(0x30, 0)),
  'only what is signed': SIGNED,
  'a key instead of a request': keyPair('p256').spki,
  'a byte after the request': Uint8Array.from([...RIGHT, 0]),
  'a request in a set': Uint8Array.from(RIGHT, (byte, index) => (index === 0 ? 0x31 : byte)),
  'a request of indefinite length': Uint8Array.from([0x30, 0x80, ...CONTENT, 0, 0]),
  'a request with a padded length': Uint8Array.from([
    0x30,
    0x83,
    0,
    CONTENT.length >> 8,
    CONTENT.length & 255,
    ...CONTENT,
  ]),
  'text in base64': Buffer.from('not a request'),
};

test('input that is not a PKCS #10 request is refused', () => {
  for (const [what, bytes] of Object.entries(WHOLE)) {
    const text = typeof bytes === 'string' ? bytes : pem(bytes);
    assert.match(
      reasonOf(() => readCsr(text), what),
      /not in the form of RFC 2986/,
      what,
    );
  }
  for (let length = 1; length < RIGHT.length; length += 1) {
    reasonOf(() => readCsr(bare(RIGHT.subarray(0, length))), `the first ${length} bytes`);
  }
});

test('a request with any byte changed is refused', () => {
  for (let index = 0; index < RIGHT.length; index += 1) {
    for (const bit of [0x01, 0x20, 0x80, 0xff]) {
      const changed = Uint8Array.from(RIGHT);
      changed[index]! ^= bit;
      reasonOf(() => readCsr(bare(changed)), `byte ${index} ^ ${bit}`);
    }
  }
  const rsa = { key: keyPair('rsa2048') };
  const others = [csr(rsa), csr({ ...rsa, pssSalt: 32, algorithm: pssAlgorithm({}) }), csr({ hash: 'sha512' })];
  const change = fc.tuple(fc.constantFrom(...others), fc.nat(), fc.integer({ min: 1, max: 255 }));
  fc.assert(
    fc.property(change, ([request, where, bits]) => {
      const changed = Uint8Array.from(request);
      changed[where % request.length]! ^= bits;
      reasonOf(() => readCsr(pem(changed)), `byte ${where % request.length} ^ ${bits}`);
    }),
    { numRuns: 2_000 },
  );
});

test('any text yields a request or a refusal, and no other error', () => {
  const base64 = fc.uint8Array({ maxLength: 400 }).map((bytes) => bare(bytes));
  const block = fc.tuple(fc.string(), base64, fc.string()).map((parts) => parts.join('\n'));
  const framed = block.map((text) => `-----BEGIN CERTIFICATE REQUEST-----\n${text}\n-----END CERTIFICATE REQUEST-----`);
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), base64, framed), (text) => {
      reasonOf(() => readCsr(text), JSON.stringify(text));
    }),
    { numRuns: 3_000 },
  );
});

const PEM = pem(RIGHT);
const BASE64 = bare(RIGHT);
const BODY = PEM.split('\n').slice(1, -2).join('\n');

const TEXTS: Readonly<Record<string, string>> = {
  'PEM with LF': PEM,
  'PEM with CRLF': pem(RIGHT, 'CERTIFICATE REQUEST', '\r\n'),
  'PEM with CR': pem(RIGHT, 'CERTIFICATE REQUEST', '\r'),
  'the older label': pem(RIGHT, 'NEW CERTIFICATE REQUEST'),
  'the older label with CRLF': pem(RIGHT, 'NEW CERTIFICATE REQUEST', '\r\n'),
  'no line break at the end': PEM.trim(),
  'blanks and empty lines around it': `\n \t\r\n${PEM}\n  \n`,
  'every line indented': PEM.replace(/^/gm, '    '),
  'blanks at the end of lines': PEM.replaceAll('\n', ' \t\n'),
  'empty lines inside': PEM.replaceAll('\n', '\n\n'),
  'lines of 76': pem(RIGHT, 'CERTIFICATE REQUEST', '\n', 76),
  'one long line': pem(RIGHT, 'CERTIFICATE REQUEST', '\n', 10_000),
  'line breaks turned into blanks': PEM.replaceAll('\n', ' '),
  'no line breaks at all': PEM.replaceAll('\n', ''),
  'text before it, as openssl prints it': `Certificate Request:\n    Data:\n        Version: 1 (0x0)\n${PEM}`,
  'text before it with CRLF': `Certificate Request:\r\n    Data:\r\n${PEM.replaceAll('\n', '\r\n')}`,
  'a byte order mark': `\ufeff${PEM}`,
  'bare base64': BASE64,
  'bare base64 in lines': BODY,
  'bare base64 in lines with CRLF': `${BODY.replaceAll('\n', '\r\n')}\r\n`,
};

const PRIVATE = keyPair('p256').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();

const NO_TEXTS: Readonly<Record<string, readonly [RegExp, string]>> = {
  nothing: [/base64/, ''],
  'blanks only': [/base64/, ' \r\n\t '],
  'too long': [/at most 32768 characters/, `${PEM}${' '.repeat(32 * 1024)}`],
  'a private key': [/holds a private key/, PRIVATE],
  'a private key before it': [/holds a private key/, PRIVATE + PEM],
  'a private key after it': [/holds a private key/, PEM + PRIVATE],
  'two requests': [/exactly one PEM block/, PEM + PEM],
  'two requests on one line': [/exactly one PEM block/, PEM.trim() + PEM],
  'a certificate': [/exactly one PEM block/, pem(RIGHT, 'CERTIFICATE')],
  'a public key': [/exactly one PEM block/, pem(keyPair('p256').spki, 'PUBLIC KEY')],
  'a label of another spelling': [/exactly one PEM block/, pem(RIGHT, 'X509 CERTIFICATE REQUEST')],
  'a label in lower case': [/exactly one PEM block/, pem(RIGHT, 'certificate request')],
  'labels that differ': [/exactly one PEM block/, PEM.replace('END CERT', 'END NEW CERT')],
  'no end': [/exactly one PEM block/, PEM.slice(0, -30)],
  'no beginning': [/base64/, PEM.slice(28)],
  'an end only': [/base64/, '-----END CERTIFICATE REQUEST-----'],
  'a beginning only': [/exactly one PEM block/, '-----BEGIN CERTIFICATE REQUEST-----'],
  'nothing between': [/base64/, pem(new Uint8Array())],
  'text after it': [/exactly one PEM block/, `${PEM}regards`],
  'text before it on its line': [/exactly one PEM block/, `csr: ${PEM}`],
  'four dashes': [/base64/, PEM.replaceAll('-----', '----')],
  'headers inside': [/base64/, PEM.replace('\n', '\nProc-Type: 4,ENCRYPTED\n\n').replace('Proc-Type', 'Proc')],
  'a header with a dash': [/exactly one PEM block/, PEM.replace('\n', '\nProc-Type: 4,ENCRYPTED\n\n')],
  'line breaks that were escaped': [/escaped twice/, PEM.replaceAll('\n', '\\n')],
  'a quoted text': [/escaped twice/, JSON.stringify(PEM)],
  base64url: [/base64/, BASE64.replace(/[AEIM]/g, '_')],
  'a foreign character': [/base64/, BASE64.replace('M', '*')],
  'a zero character': [/base64/, BASE64.replace('M', '\0')],
  'a character that only looks right': [/base64/, BASE64.replace('M', 'М')],
  'half a character': [/base64/, `${BASE64}\ud83d`],
  'a non-breaking blank inside': [/base64/, BASE64.replace('M', 'M\u00a0')],
  'padding inside': [/base64/, `AAA=${BASE64}`],
  'padding only': [/base64/, '===='],
  'too much padding': [/base64/, `${bare(new Uint8Array(3))}====`],
  'too little padding': [/base64/, bare(new Uint8Array(4)).replace(/=+$/, '')],
  'loose bits at the end': [/base64/, 'AB=='],
  'one character': [/base64/, 'A'],
};

test('a request may come as PEM in any of its usual forms, or as bare base64', () => {
  for (const [what, text] of Object.entries(TEXTS)) {
    assert.deepEqual(readCsr(text).der, RIGHT, what);
  }
});

test('any other text is refused with its reason', () => {
  for (const [what, [reason, text]] of Object.entries(NO_TEXTS)) {
    assert.match(
      reasonOf(() => readCsr(text), what),
      reason,
      what,
    );
  }
});

/** Processor time, which other load on the machine does not add to: what an attacker could take from other callers. */
function processorMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

test('hostile text costs little', () => {
  const full = (text: string) => text.repeat(32 * 1024).slice(0, 32 * 1024);
  const seeds = ['-----BEGIN ', '-----BEGIN A-----', '\n', ' \n', '\n-----END A', 'A', '=', 'MAAw', '-', PEM];
  for (const text of seeds
    .map(full)
    .flatMap((one) => [one, `-----BEGIN CERTIFICATE REQUEST-----${one}`.slice(0, 32768)])) {
    const cost = processorMs(() => reasonOf(() => readCsr(text), text.slice(0, 60)));
    assert.ok(cost < 250, `${cost} ms of processor time for ${text.slice(0, 60)}`);
  }
});

test('openssl, where installed, agrees', (t) => {
  const openssl = (args: readonly string[], input = '') => spawnSync('openssl', args, { input, encoding: 'utf8' });
  const { stdout: version, error } = openssl(['version']);
  t.diagnostic(error ? 'openssl is NOT installed: nothing compared' : `compared with ${version.trim()}`);
  if (error) return;
  const spkiOf = (text: string) => openssl(['req', '-pubkey', '-noout'], text).stdout.replace(/-----.*-----|\n/g, '');

  const ec = (curve: string) => ['-newkey', 'ec', '-pkeyopt', `ec_paramgen_curve:${curve}`];
  const pss = ['-newkey', 'rsa:2048', '-sigopt', 'rsa_padding_mode:pss', '-sigopt', 'rsa_pss_saltlen:digest'];
  const subject = '/C=CN/O=例子 & Co/CN=*.example.com/emailAddress=a@example.com';
  for (const key of [['-newkey', 'rsa:2048'], pss, ec('P-256'), ec('P-384'), ec('P-521')]) {
    for (const hash of HASHES) {
      const extensions = ['-newhdr', '-addext', 'subjectAltName=DNS:example.com,IP:::1'];
      const form = hash === 'sha256' ? extensions : ['-text'];
      const options = ['-nodes', '-keyout', '/dev/null', '-utf8', '-subj', subject, `-${hash}`];
      const { stdout } = openssl(['req', '-new', ...key, ...options, ...form]);
      assert.equal(bare(readCsr(stdout).publicKey.spki), spkiOf(stdout), `${key} ${hash}`);
    }
  }
  const kinds = KEY_KINDS.flatMap((kind) => HASHES.map((hash) => csr({ key: keyPair(kind), hash })));
  for (const der of [...kinds, ...Object.values(tables.VALID_CSRS).map(csr)]) {
    assert.equal(openssl(['req', '-verify', '-noout'], pem(der)).status, 0);
    assert.equal(spkiOf(pem(der)), bare(readCsr(pem(der)).publicKey.spki));
  }
  const forged = pem(csr({ spki: newKeyPair('p256').spki }));
  assert.match(openssl(['req', '-verify', '-noout'], forged).stderr, /verif(y|ication) fail/i);
});
