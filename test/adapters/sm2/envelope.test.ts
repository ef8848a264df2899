// SM2 encryption and SM2EnvelopedKey: against the standard's example, and decrypted by sm-crypto-v2 and, if installed,
// openssl. The service itself never decrypts.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createDecipheriv, createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { sm2 as oracle, sm4 as oracleSm4 } from 'sm-crypto-v2';
import { DerReader } from '../../../src/adapters/der/reader.ts';
import { integer, octetString, sequence } from '../../../src/adapters/der/writer.ts';
import { envelopedKey, sm2Encrypt } from '../../../src/adapters/sm2/envelope.ts';
import { newSm2Key, openSm2PublicKey, sm2Scalar } from '../../../src/adapters/sm2/sm2.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytes = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

interface Pair {
  readonly scalar: Uint8Array;
  readonly point: Uint8Array;
  readonly pem: string;
}

function newPair(): Pair {
  const { pkcs8, spki } = newSm2Key();
  const handle = createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' });
  const pem = handle.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { scalar: sm2Scalar(pkcs8), point: openSm2PublicKey(spki).point, pem };
}

// GM/T 0003.5, appendix C, in the order C1 C3 C2, usual since 2012.
const EXAMPLE = {
  point: bytes(
    '04 09f9df311e5421a150dd7d161e4bc5c672179fad1833fc076bb08ff356f35020 ccea490ce26775a52dc6ea718cc1aa600aed05fbf35e084a6632f6072da9ad13',
  ),
  k: 0x59276e27d506861a16680f3ad9c02dccef3cc1fa3cdbe4ce6d54b80deac1bc21n,
  x: bytes('04ebfc718e8d1798620432268e77feb6415e2ede0e073c0f4f640ecd2e149a73'),
  y: bytes('e858f9d81e5430a57b36daab8f950a3c64e6ee6a63094d99283aff767e124df0'),
  hash: bytes('59983c18f809e262923c53aec295d30383b54e39d609d160afcb1908d0bd8766'),
  cipher: bytes('21886ca989ca9c7d58087307ca93092d651efa'),
};

test('the standard’s example, with its scalar', () => {
  const { x, y, hash, cipher, point, k } = EXAMPLE;
  const expected = sequence([integer(x), integer(y), octetString(hash), octetString(cipher)]);
  assert.equal(hex(sm2Encrypt(Buffer.from('encryption standard'), point, () => k)), hex(expected));
});

test('an all-zero mask is rejected and another scalar drawn', () => {
  // The smallest scalar whose mask for the example's key begins with a zero.
  const zeroMask = 470n;
  const scalars = [zeroMask, zeroMask, EXAMPLE.k];
  const twice = sm2Encrypt(Uint8Array.of(7), EXAMPLE.point, () => scalars.shift()!);
  assert.deepEqual(scalars, []);
  assert.deepEqual(
    twice,
    sm2Encrypt(Uint8Array.of(7), EXAMPLE.point, () => EXAMPLE.k),
  );
});

test('sm-crypto-v2 opens what is encrypted, of any length', () => {
  const { scalar, point } = newPair();
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (message) => {
      const opened = oracle.doDecrypt(hex(sm2Encrypt(message, point)), hex(scalar), 1, { asn1: true, output: 'array' });
      assert.equal(hex(opened), hex(message));
    }),
    { numRuns: 30, examples: [[new Uint8Array(1)], [new Uint8Array(32)], [new Uint8Array(33)], [new Uint8Array(64)]] },
  );
});

interface Opened {
  readonly algorithm: string;
  readonly cipher: Uint8Array;
  readonly point: Uint8Array;
  readonly hidden: Uint8Array;
}

function read(envelope: Uint8Array): Opened {
  const outer = new DerReader(envelope);
  const fields = outer.sequence();
  outer.end();
  const algorithm = fields.sequence();
  const parts = {
    algorithm: algorithm.oid(),
    cipher: fields.any(),
    point: fields.bitString(),
    hidden: fields.bitString(),
  };
  algorithm.end();
  fields.end();
  return parts;
}

/** Whether openssl supports SM2 decryption. */
function hasOpenssl(context: TestContext): boolean {
  const openssl = (...args: string[]) => spawnSync('openssl', args, { encoding: 'utf8' });
  const isPresent =
    /^OpenSSL [3-9]/.test(openssl('version').stdout ?? '') && /SM2/.test(openssl('ecparam', '-list_curves').stdout);
  context.diagnostic(`oracles: ${isPresent ? 2 : 1} of 2 (sm-crypto-v2${isPresent ? ', openssl' : '; no openssl'})`);
  return isPresent;
}

test('the recipient opens the envelope and finds the private key of the public key in it', (context) => {
  const isAsked = hasOpenssl(context);
  const folder = mkdtempSync(join(tmpdir(), 'reseal-envelope-'));
  context.after(() => rmSync(folder, { recursive: true }));
  for (let round = 0; round < 10; round += 1) {
    const [key, recipient] = [newPair(), newPair()];
    const { algorithm, cipher, point, hidden } = read(envelopedKey(key, recipient.point));
    assert.equal(algorithm, '1.2.156.10197.1.104.1');
    assert.equal(hex(point), hex(key.point));
    assert.equal(hidden.length, 32);

    const sm4Key = oracle.doDecrypt(hex(cipher), hex(recipient.scalar), 1, { asn1: true, output: 'array' });
    assert.equal(sm4Key.length, 16);
    const found = oracleSm4.decrypt(hidden, sm4Key, { mode: 'ecb', padding: 'none', output: 'array' });
    assert.equal(hex(found), hex(key.scalar));
    assert.equal(oracle.getPublicKeyFromPrivateKey(hex(found)), hex(point));

    if (!isAsked) continue;
    writeFileSync(join(folder, 'key'), recipient.pem);
    const openssl = (args: string[], input: Uint8Array) => spawnSync('openssl', args, { input }).stdout;
    const theirs = openssl(['pkeyutl', '-decrypt', '-inkey', join(folder, 'key')], cipher);
    assert.equal(hex(theirs), hex(sm4Key));
    // Some builds of openssl have no SM4; node:crypto's does.
    const decipher = createDecipheriv('sm4-ecb', theirs, null).setAutoPadding(false);
    assert.equal(hex(Buffer.concat([decipher.update(hidden), decipher.final()])), hex(key.scalar));
  }
});

test('coordinates with a leading zero or a leading one bit are encoded as DER integers', () => {
  const { scalar, point } = newPair();
  // Scalars of points that begin with 32… bc…, 3b… 007b…, and 00d0… 50…, and the lengths that follow.
  const POINTS: readonly [bigint, number, number][] = [
    [1n, 32, 33],
    [107n, 32, 31],
    [327n, 32, 32],
  ];
  for (const [k, x, y] of POINTS) {
    const cipher = sm2Encrypt(Uint8Array.of(1, 2, 3), point, () => k);
    const fields = new DerReader(cipher).sequence();
    assert.deepEqual([fields.integer().length, fields.integer().length], [x, y], `${k}`);
    const opened = oracle.doDecrypt(hex(cipher), hex(scalar), 1, { asn1: true, output: 'array' });
    assert.equal(hex(opened), '010203', `${k}`);
  }
});

test('each envelope is different', () => {
  const [key, recipient] = [newPair(), newPair()];
  const [one, two] = [1, 2].map(() => read(envelopedKey(key, recipient.point)));
  assert.notEqual(hex(one!.cipher), hex(two!.cipher));
  assert.notEqual(hex(one!.hidden), hex(two!.hidden));
});

test('the input key is not modified', () => {
  const key = newPair();
  const before = hex(key.scalar);
  envelopedKey(key, newPair().point);
  assert.equal(hex(key.scalar), before);
});

test('refuses invalid keys and points', () => {
  const { scalar, point } = newPair();
  const offCurve = Uint8Array.from(point);
  offCurve[64]! ^= 1;
  const compressed = Buffer.concat([Uint8Array.of(2 + (point[64]! & 1)), point.subarray(1, 33)]);
  const hybrid = Buffer.concat([Uint8Array.of(6 + (point[64]! & 1)), point.subarray(1)]);
  for (const bad of [
    new Uint8Array(),
    Uint8Array.of(0),
    new Uint8Array(65),
    offCurve,
    compressed,
    hybrid,
    point.subarray(1),
  ]) {
    assert.throws(() => sm2Encrypt(Uint8Array.of(1), bad), /point/, hex(bad));
    assert.throws(() => envelopedKey({ scalar, point }, bad), /point/, hex(bad));
  }
  assert.throws(() => envelopedKey({ scalar, point: compressed }, point), RangeError);
  for (const length of [0, 31, 33])
    assert.throws(() => envelopedKey({ scalar: Buffer.alloc(length), point }, point), RangeError);
  assert.throws(() => sm2Encrypt(new Uint8Array(), point), RangeError);
});
