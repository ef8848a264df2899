// Signatures over digests, verified by other implementations: node:crypto over the message; for SM2 sm-crypto-v2 and, if
// installed, openssl.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { sm2 } from 'sm-crypto-v2';
import { DerReader } from '../../../src/adapters/der/reader.ts';
import { integer, octetString, sequence } from '../../../src/adapters/der/writer.ts';
import { KEY_ALGORITHM } from '../../../src/adapters/sm2/curve.ts';
import { sm2Spki } from '../../../src/adapters/sm2/sm2.ts';
import { signDigest } from '../../../src/adapters/workers/sign-digest.ts';
import { pem } from '../../../src/domain/certificate/pem.ts';
import type { KeyType, PublicKey } from '../../../src/domain/certificate/public-key.ts';
import { DIGEST_BYTES, SIGN_HASHES } from '../../../src/domain/certificate/sign-hash.ts';

const SHA2 = ['sha256', 'sha384', 'sha512'] as const;

const pkcs8 = (key: KeyObject): Uint8Array => new Uint8Array(key.export({ format: 'der', type: 'pkcs8' }));
const publicKey = (type: KeyType, bits: number): PublicKey => ({ type, bits, spki: new Uint8Array(), fingerprint: '' });
const digestOf = (hash: string, message: Uint8Array) => createHash(hash).update(message).digest();

test('RSA signatures equal those of node:crypto over the message', () => {
  for (const modulusLength of [2048, 3072]) {
    const pair = generateKeyPairSync('rsa', { modulusLength });
    for (const hash of SHA2) {
      const message = randomBytes(100);
      const signature = signDigest(
        pkcs8(pair.privateKey),
        publicKey('rsa', modulusLength),
        hash,
        digestOf(hash, message),
      );
      assert.ok(verify(hash, message, pair.publicKey, signature));
      assert.equal(signature.length, modulusLength / 8);
      assert.ok(!verify(hash, randomBytes(100), pair.publicKey, signature));
    }
  }
});

test('ECDSA signatures verify over the message, even if the digest is longer than the curve', () => {
  for (const bits of [256, 384, 521]) {
    const pair = generateKeyPairSync('ec', { namedCurve: `P-${bits}` });
    const key = publicKey(`p${bits}` as KeyType, bits);
    for (const hash of SHA2) {
      for (let count = 0; count < 4; count += 1) {
        const message = randomBytes(100);
        const signature = signDigest(pkcs8(pair.privateKey), key, hash, digestOf(hash, message));
        assert.ok(verify(hash, message, pair.publicKey, signature), `${key.type} ${hash}`);
        assert.ok(!verify(hash, randomBytes(100), pair.publicKey, signature));
      }
    }
  }
});

const bytes = (hex: string): Uint8Array => Buffer.from(hex, 'hex');

/** In OpenSSL's formats. */
function sm2Pair() {
  const made = sm2.generateKeyPairHex();
  const secret = sequence([integer(1), octetString(bytes(made.privateKey))]);
  return {
    ...made,
    pkcs8: sequence([integer(0), KEY_ALGORITHM, octetString(secret)]),
    spki: sm2Spki(bytes(made.publicKey)),
  };
}

/** The SM2 digest of a message under the default id: SM3(Z ‖ M). */
const sm2Digest = (message: Uint8Array, pair: { publicKey: string }): Uint8Array =>
  bytes(sm2.getHash(message, pair.publicKey));

test('SM2 signatures verify over the message and the identity of the signer', () => {
  for (let count = 0; count < 20; count += 1) {
    const pair = sm2Pair();
    const message = randomBytes(100);
    const signature = signDigest(pair.pkcs8, publicKey('sm2', 256), 'sm3', sm2Digest(message, pair));
    const isSigned = (what: Uint8Array) =>
      sm2.doVerifySignature(what, Buffer.from(signature).toString('hex'), pair.publicKey, { hash: true, der: true });
    assert.ok(isSigned(message));
    assert.ok(!isSigned(randomBytes(100)));
  }
});

test('two SM2 signatures of one digest share neither r nor s: each has a fresh nonce', () => {
  const pair = sm2Pair();
  const digest = randomBytes(32);
  const parts = [1, 2].flatMap(() => {
    const reader = new DerReader(signDigest(pair.pkcs8, publicKey('sm2', 256), 'sm3', digest)).sequence();
    return [reader.positive(), reader.positive()].map((one) => Buffer.from(one).toString('hex'));
  });
  assert.equal(new Set(parts).size, 4);
});

test('openssl agrees about SM2', (context) => {
  const pair = sm2Pair();
  const message = randomBytes(100);
  const folder = mkdtempSync(join(tmpdir(), 'reseal-test-'));
  context.after(() => rmSync(folder, { recursive: true }));
  const file = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const signature = signDigest(pair.pkcs8, publicKey('sm2', 256), 'sm3', sm2Digest(message, pair));
  const isSigned = (what: Uint8Array) =>
    spawnSync('openssl', [
      ...['dgst', '-sm3', '-verify', file('key.pem', pem('PUBLIC KEY', pair.spki))],
      ...['-sigopt', 'distid:1234567812345678', '-signature', file('signature', signature), file('message', what)],
    ]);
  const right = isSigned(message);
  if (right.error) return context.diagnostic('there is no openssl on this machine');
  assert.match(String(right.stdout), /Verified OK/, String(right.stderr));
  assert.doesNotMatch(String(isSigned(randomBytes(100)).stdout), /Verified OK/);
});

test('refuses a digest of the wrong length, or of a hash the key does not sign', () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const [key, secret] = [publicKey('p256', 256), pkcs8(pair.privateKey)];
  for (const hash of SIGN_HASHES) {
    for (const length of [0, 1, 20, DIGEST_BYTES[hash] - 1, DIGEST_BYTES[hash] + 1]) {
      assert.throws(() => signDigest(secret, key, hash, new Uint8Array(length)), RangeError);
    }
  }
  assert.throws(() => signDigest(secret, key, 'sm3', new Uint8Array(32)), RangeError);
  assert.throws(() => signDigest(sm2Pair().pkcs8, publicKey('sm2', 256), 'sha256', new Uint8Array(32)), RangeError);
});
