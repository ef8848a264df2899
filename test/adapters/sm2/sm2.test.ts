// SM2 keys and signatures: against the standard's example, against sm-crypto-v2 and, where it is installed, openssl;
// and against keys and signatures that somebody wrote with care.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createPrivateKey, createPublicKey, createVerify, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { sm2 as oracle } from 'sm-crypto-v2';
import { DerError } from '../../../src/adapters/der/reader.ts';
import {
  bitString,
  explicit,
  integer,
  NULL,
  octetString,
  oid,
  raw,
  sequence,
  TAG,
} from '../../../src/adapters/der/writer.ts';
import { CURVE, CURVE_NAME, KEY_ALGORITHM } from '../../../src/adapters/sm2/curve.ts';
import { type Sm2Functions, sm2Fault } from '../../../src/adapters/sm2/self-check.ts';
import {
  newSm2Key,
  openSm2PrivateKey,
  openSm2PublicKey,
  sm2Scalar,
  sm2Sign,
  sm2Spki,
  sm2Verify,
  sm2Z,
} from '../../../src/adapters/sm2/sm2.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytes = (text: string): Buffer => Buffer.from(text, 'hex');
const field = (value: bigint): Buffer => bytes(value.toString(16).padStart(64, '0'));
const N = BigInt(`0x${CURVE.n}`);
const P = BigInt(`0x${CURVE.p}`);

// GM/T 0003.5, appendix A.
const EXAMPLE = {
  scalar: bytes('3945208f7b2144b13f36e38ac6d39f95889393692860b51a42fb81ef4df7c5b8'),
  point: bytes(
    '0409f9df311e5421a150dd7d161e4bc5c672179fad1833fc076bb08ff356f35020ccea490ce26775a52dc6ea718cc1aa600aed05fbf35e084a6632f6072da9ad13',
  ),
  z: 'b2e14c5c79c6df5b85f4fe7ed8db7a262b9da7e07ccb0ea9f4747b8ccda8a4f3',
  r: bytes('f5a03b0648d2c4630eeac513e1bb81a15944da3827d5b74143ac7eaceee720b3'),
  s: bytes('b1b6aa29df212fd8763182bc0d421ca1bb9038fd1f7f42d4840b69c485bbc1aa'),
};
const MESSAGE = Buffer.from('message digest');
const SIGNATURE = sequence([integer(EXAMPLE.r), integer(EXAMPLE.s)]);

const pkcs8 = (scalar: Uint8Array, ...rest: Uint8Array[]): Uint8Array =>
  sequence([integer(0), KEY_ALGORITHM, octetString(sequence([integer(1), octetString(scalar), ...rest]))]);

const exampleKey = openSm2PrivateKey(pkcs8(EXAMPLE.scalar));
const examplePublic = openSm2PublicKey(sm2Spki(EXAMPLE.point));

test('the standard’s example: public half, Z and published signature', () => {
  assert.equal(hex(exampleKey.publicKey.point), hex(EXAMPLE.point));
  assert.equal(hex(sm2Z(EXAMPLE.point)), EXAMPLE.z);
  assert.equal(sm2Verify(examplePublic, MESSAGE, SIGNATURE), true);
  assert.equal(sm2Verify(examplePublic, Buffer.from('message digesT'), SIGNATURE), false);
});

test('a new key is read back as SM2, with both halves and a scalar of 32 bytes', () => {
  for (let count = 0; count < 20; count += 1) {
    const made = newSm2Key();
    const key = openSm2PrivateKey(made.pkcs8);
    const { point, handle } = openSm2PublicKey(made.spki);
    assert.notEqual(key.handle.asymmetricKeyType, 'ec');
    assert.notEqual(handle.asymmetricKeyType, 'ec');
    assert.deepEqual(key.publicKey.point, point);
    assert.deepEqual(sm2Spki(point), Uint8Array.from(made.spki));
    assert.equal(`04${oracle.getPublicKeyFromPrivateKey(hex(sm2Scalar(made.pkcs8))).slice(2)}`, hex(point));
  }
});

test('the trap is still there: what node:crypto generates signs ECDSA until it is read from bytes', () => {
  const fresh = generateKeyPairSync('ec', { namedCurve: 'SM2' });
  const key = openSm2PrivateKey(fresh.privateKey.export({ type: 'pkcs8', format: 'der' }));
  const ecdsa = sign('sm3', Buffer.concat([sm2Z(key.publicKey.point), MESSAGE]), fresh.privateKey);
  assert.equal(fresh.privateKey.asymmetricKeyType, 'ec');
  assert.equal(sm2Verify(key.publicKey, MESSAGE, ecdsa), false);
  assert.equal(sm2Verify(key.publicKey, MESSAGE, sm2Sign(key, MESSAGE)), true);
});

test('sm-crypto-v2 verifies what we sign, and we what it signs; neither does for another message', () => {
  const made = newSm2Key();
  const key = openSm2PrivateKey(made.pkcs8);
  const [secret, point] = [hex(sm2Scalar(made.pkcs8)), hex(key.publicKey.point)];
  const options = { der: true, hash: true, publicKey: point };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(299), (message, at) => {
      const other = Uint8Array.from(message.length === 0 ? [0] : message);
      other[at % other.length]! ^= 1;
      const ours = sm2Sign(key, message);
      const theirs = bytes(oracle.doSignature(message, secret, options));
      assert.equal(oracle.doVerifySignature(message, hex(ours), point, options), true);
      assert.equal(sm2Verify(key.publicKey, message, theirs), true);
      assert.equal(sm2Verify(key.publicKey, message, ours), true);
      assert.equal(sm2Verify(key.publicKey, other, theirs), false);
      assert.equal(sm2Verify(examplePublic, message, ours), false);
    }),
    { numRuns: 40 },
  );
});

test('openssl, where it knows SM2, verifies what we sign, and we what it signs', (context) => {
  const openssl = (...args: string[]) => spawnSync('openssl', args, { encoding: 'utf8' });
  const isPresent =
    /^OpenSSL [3-9]/.test(openssl('version').stdout ?? '') && /SM2/.test(openssl('ecparam', '-list_curves').stdout);
  context.diagnostic(`oracles: ${isPresent ? 2 : 1} of 2 (sm-crypto-v2${isPresent ? ', openssl' : '; no openssl'})`);
  if (!isPresent) return;
  const folder = mkdtempSync(join(tmpdir(), 'reseal-sm2-'));
  const file = (name: string, content: Uint8Array | string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  try {
    const made = newSm2Key();
    const key = openSm2PrivateKey(made.pkcs8);
    const handle = createPrivateKey({ key: Buffer.from(made.pkcs8), format: 'der', type: 'pkcs8' });
    const secret = file('key', handle.export({ type: 'pkcs8', format: 'pem' }));
    const open = file('public', createPublicKey(handle).export({ type: 'spki', format: 'pem' }));
    const message = file('message', MESSAGE);
    const flags = ['dgst', '-sm3', '-sigopt', 'distid:1234567812345678'];
    const ours = file('ours', sm2Sign(key, MESSAGE));
    assert.match(openssl(...flags, '-verify', open, '-signature', ours, message).stdout, /Verified OK/);
    const theirs = spawnSync('openssl', [...flags, '-sign', secret, message]).stdout;
    assert.equal(sm2Verify(key.publicKey, MESSAGE, theirs), true);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** A point whose x is small enough to be written a second time, as x + p. */
function smallPoint(): { x: bigint; y: bigint } {
  const power = (base: bigint, exponent: bigint): bigint => {
    let [result, square] = [1n, base % P];
    for (let left = exponent; left > 0n; left >>= 1n) {
      if (left & 1n) result = (result * square) % P;
      square = (square * square) % P;
    }
    return result;
  };
  for (let x = 1n; ; x += 1n) {
    const squared = (x ** 3n - 3n * x + BigInt(`0x${CURVE.b}`)) % P;
    const y = power(squared, (P + 1n) / 4n);
    if ((y * y) % P === squared) return { x, y };
  }
}

test('public keys of other kinds and forms are refused', (context) => {
  const { point } = EXAMPLE;
  const changed = (at: number, xor: number) => point.map((byte, index) => (index === at ? byte ^ xor : byte));
  const uncompressed = (x: Uint8Array, y: Uint8Array) => Buffer.concat([Uint8Array.of(4), x, y]);
  const spki = sm2Spki(point);
  const small = smallPoint();
  const EC = oid('1.2.840.10045.2.1');
  const of = (algorithm: Uint8Array[], key: Uint8Array = bitString(point)) => sequence([sequence(algorithm), key]);
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'der' });
  const BAD: Readonly<Record<string, Uint8Array>> = {
    nothing: new Uint8Array(),
    'a point of P-256': p256,
    'a point of P-256 under the name of SM2': sm2Spki(p256.subarray(-65)),
    'the curve as the algorithm': of([CURVE_NAME]),
    'no curve': of([EC]),
    'NULL for a curve': of([EC, NULL]),
    'parameters after the curve': of([EC, CURVE_NAME, NULL]),
    'the SM2 signature algorithm': of([oid('1.2.156.10197.1.501')]),
    'the curve by its numbers': of([
      EC,
      sequence([integer(1), sequence([oid('1.2.840.10045.1.1'), integer(field(P))])]),
    ]),
    'bytes after it': Buffer.concat([spki, Uint8Array.of(0)]),
    'bytes after the key': sequence([KEY_ALGORITHM, bitString(point), NULL]),
    'cut short': spki.subarray(0, -1),
    'a padded length': Buffer.concat([Uint8Array.of(0x30, 0x81), spki.subarray(1)]),
    'an octet string for a key': of([EC, CURVE_NAME], octetString(point)),
    'unused bits': of([EC, CURVE_NAME], raw(TAG.bitString, Buffer.concat([Uint8Array.of(1), point]))),
    'a key of no bits': sm2Spki(new Uint8Array()),
    'the point at infinity': sm2Spki(Uint8Array.of(0)),
    'the point at infinity, written long': sm2Spki(Buffer.alloc(65)),
    'a compressed point': sm2Spki(Buffer.concat([Uint8Array.of(3), point.subarray(1, 33)])),
    'a hybrid point': sm2Spki(changed(0, 4 ^ 7)),
    'a point without its first byte': sm2Spki(point.subarray(1)),
    'a point and a byte': sm2Spki(Buffer.concat([point, Uint8Array.of(0)])),
    'another x': sm2Spki(changed(1, 1)),
    'another y': sm2Spki(changed(64, 1)),
    'all zeros': sm2Spki(uncompressed(field(0n), field(0n))),
    'x of p': sm2Spki(uncompressed(field(P), field(0n))),
    'x + p': sm2Spki(uncompressed(field(small.x + P), field(small.y))),
  };
  for (const [what, der] of Object.entries(BAD)) assert.throws(() => openSm2PublicKey(der), DerError, what);
  assert.ok(openSm2PublicKey(sm2Spki(uncompressed(field(small.x), field(small.y)))));
  assert.ok(openSm2PublicKey(sm2Spki(uncompressed(field(small.x), field(P - small.y)))));
  context.diagnostic(`${Object.keys(BAD).length} wrong public keys`);
});

test('signatures in any other form, or out of range, do not verify', (context) => {
  const { r, s } = EXAMPLE;
  const pair = (...numbers: Uint8Array[]) => sequence(numbers);
  const [R, S] = [integer(r), integer(s)];
  const plus = (number: Uint8Array, more: bigint) =>
    integer(bytes((BigInt(`0x${hex(number)}`) + more).toString(16).padStart(66, '0')));
  const BAD: Readonly<Record<string, Uint8Array>> = {
    nothing: new Uint8Array(),
    'raw r and s': Buffer.concat([r, s]),
    'r alone': pair(R),
    'three numbers': pair(R, S, S),
    's before r': pair(S, R),
    'bytes after it': Buffer.concat([SIGNATURE, Uint8Array.of(0)]),
    'NULL after s': pair(R, S, NULL),
    'cut short': SIGNATURE.subarray(0, -1),
    'a padded length': Buffer.concat([Uint8Array.of(0x30, 0x81), SIGNATURE.subarray(1)]),
    'an indefinite length': Buffer.concat([Uint8Array.of(0x30, 0x80), R, S, Uint8Array.of(0, 0)]),
    'a set': raw(TAG.set, Buffer.concat([R, S])),
    'octet strings': pair(octetString(r), octetString(s)),
    'r padded': pair(raw(TAG.integer, Buffer.concat([Uint8Array.of(0, 0), r])), S),
    's padded': pair(R, raw(TAG.integer, Buffer.concat([Uint8Array.of(0, 0), s]))),
    'r negative': pair(raw(TAG.integer, r), S),
    's negative': pair(R, raw(TAG.integer, s)),
    'r of no bytes': pair(raw(TAG.integer, new Uint8Array()), S),
    'r of zero': pair(integer(0), S),
    's of zero': pair(R, integer(0)),
    'both zero': pair(integer(0), integer(0)),
    'r of n': pair(integer(field(N)), S),
    's of n': pair(R, integer(field(N))),
    'r + n': pair(plus(r, N), S),
    's + n': pair(R, plus(s, N)),
    'n − s, which ECDSA would take': pair(R, integer(field(N - BigInt(`0x${hex(s)}`)))),
    'r of n − 1': pair(integer(field(N - 1n)), S),
    ones: pair(integer(1), integer(1)),
    'much too long': pair(integer(Buffer.alloc(4096, 0x7f)), S),
  };
  for (const [what, der] of Object.entries(BAD)) assert.equal(sm2Verify(examplePublic, MESSAGE, der), false, what);
  context.diagnostic(`${Object.keys(BAD).length} wrong signatures`);
});

test('no change of one bit of a signature verifies, and no bytes make verifying throw', () => {
  fc.assert(
    fc.property(fc.nat(SIGNATURE.length * 8 - 1), fc.uint8Array({ maxLength: 80 }), (bit, noise) => {
      const altered = Uint8Array.from(SIGNATURE);
      altered[bit >> 3]! ^= 1 << (bit & 7);
      assert.equal(sm2Verify(examplePublic, MESSAGE, altered), false);
      assert.equal(sm2Verify(examplePublic, MESSAGE, noise), false);
    }),
    { numRuns: 300 },
  );
});

test('private keys of other kinds, out of range or with another’s public half are refused', () => {
  const { scalar, point } = EXAMPLE;
  const stated = (of: Uint8Array) => explicit(1, bitString(of));
  const named = (curve: Uint8Array) => explicit(0, curve);
  const other = openSm2PublicKey(newSm2Key().spki).point;
  const ed = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'der' });
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'der' });
  const BAD: Readonly<Record<string, Uint8Array>> = {
    nothing: new Uint8Array(),
    'an Ed25519 key': ed,
    'a P-256 key': p256,
    'zero, whose point is infinity': pkcs8(field(0n)),
    'n − 1, with which node:crypto signs for ever': pkcs8(field(N - 1n)),
    n: pkcs8(field(N)),
    '31 bytes': pkcs8(scalar.subarray(1)),
    '33 bytes': pkcs8(Buffer.concat([Uint8Array.of(0), scalar])),
    'another’s public half': pkcs8(scalar, stated(other)),
    'a compressed public half': pkcs8(scalar, stated(Buffer.concat([Uint8Array.of(3), point.subarray(1, 33)]))),
    'another curve inside': pkcs8(scalar, named(oid('1.2.840.10045.3.1.7'))),
    'bytes after it': Buffer.concat([pkcs8(scalar), Uint8Array.of(0)]),
    attributes: sequence([
      integer(0),
      KEY_ALGORITHM,
      octetString(sequence([integer(1), octetString(scalar)])),
      named(NULL),
    ]),
    'version 1': sequence([integer(1), KEY_ALGORITHM, octetString(sequence([integer(1), octetString(scalar)]))]),
  };
  for (const [what, der] of Object.entries(BAD)) assert.throws(() => openSm2PrivateKey(der), DerError, what);
  const GOOD = [
    pkcs8(scalar),
    pkcs8(scalar, stated(point)),
    pkcs8(scalar, named(CURVE_NAME)),
    pkcs8(scalar, named(CURVE_NAME), stated(point)),
  ];
  for (const der of GOOD) assert.equal(hex(openSm2PrivateKey(der).publicKey.point), hex(point));
  for (const edge of [1n, N - 2n]) {
    const key = openSm2PrivateKey(pkcs8(field(edge)));
    assert.equal(sm2Verify(key.publicKey, MESSAGE, sm2Sign(key, MESSAGE)), true);
  }
});

test('the self-test passes here, and says what is wrong elsewhere', () => {
  assert.equal(sm2Fault(), null);
  const ecdsaKey = generateKeyPairSync('ec', { namedCurve: 'SM2' }).privateKey;
  const withoutId: Sm2Functions['verify'] = ({ handle }, message, signature) =>
    createVerify('sm3').update(message).verify(handle, signature);
  const onlyOthersAreLax: Sm2Functions['verify'] = (key, message, signature) =>
    Buffer.compare(signature, SIGNATURE) !== 0 || sm2Verify(key, message, signature);
  const ours: Sm2Functions = {
    newKey: newSm2Key,
    z: sm2Z,
    sign: sm2Sign,
    verify: sm2Verify,
    sm4: () => bytes('681edf34d206965e86b3e94f536e4246'),
  };
  const missing = () => assert.fail('unknown digest');
  const FAULTS: readonly [Partial<Sm2Functions>, RegExp][] = [
    [{ z: () => Buffer.alloc(32) }, /^Z of the example key/],
    [{ verify: () => false }, /published signature does not verify/],
    [{ verify: withoutId }, /published signature does not verify/],
    [{ verify: () => true }, /published signature verifies for another message/],
    [{ sign: (_, message) => sign('sm3', message, ecdsaKey) }, /signature of its own does not verify/],
    [{ sign: () => SIGNATURE }, /a new key does not verify what it signs/],
    [{ verify: onlyOthersAreLax }, /signature of its own verifies for another message/],
    [{ newKey: () => ({ ...newSm2Key(), spki: newSm2Key().spki }) }, /a new key does not verify what it signs/],
    [{ sm4: (_, block) => block }, /^SM4/],
    [{ sign: missing }, /cannot do it: unknown digest/],
    [{ newKey: missing }, /cannot do it: unknown digest/],
  ];
  assert.equal(sm2Fault(ours), null);
  for (const [fault, words] of FAULTS) assert.match(sm2Fault({ ...ours, ...fault }) ?? 'no fault', words);
});
