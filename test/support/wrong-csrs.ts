// Tables of invalid CSRs by fault, and of unusual but valid ones. The tests say which reason belongs to which table.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import * as der from '../../src/adapters/der/writer.ts';
import { KEY_ALGORITHM as SM2_KEY } from '../../src/adapters/sm2/curve.ts';
import * as make from './csr.ts';
import { keyPair, name } from './csr.ts';

const { oid, sequence, setOf, raw, integer, utf8String, NULL, TAG } = der;
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'));

export type Table = Readonly<Record<string, make.Parts>>;

const commonName = (value: Uint8Array) => ({ subject: sequence([name('2.5.4.3', value)]) });
const subject = (...names: Uint8Array[]) => ({ subject: sequence(names) });
const attributes = (...list: Uint8Array[]) => ({ attributes: make.attributesOf(...list) });
const nested = (depth: number): Uint8Array => (depth === 0 ? NULL : sequence([nested(depth - 1)]));

export const BAD_FORMS: Table = {
  'version 2': { version: integer(1) },
  'version −1': { version: raw(TAG.integer, bytes('ff')) },
  'a padded version': { version: raw(TAG.integer, bytes('00 00')) },
  'version 129': { version: integer(128) },
  'version 257': { version: integer(256) },
  'no version': { version: new Uint8Array() },
  'a subject that is a set': { subject: setOf([]) },
  'no subject': { subject: new Uint8Array() },
  'a relative name that is no set': subject(sequence([sequence([oid('2.5.4.3'), utf8String('a')])])),
  'a relative name without attributes': subject(setOf([])),
  'an attribute without a value': subject(setOf([sequence([oid('2.5.4.3')])])),
  'an attribute with two values': subject(setOf([sequence([oid('2.5.4.3'), utf8String('a'), utf8String('b')])])),
  'an attribute without a type': subject(setOf([sequence([utf8String('a')])])),
  'a padded attribute type': subject(setOf([sequence([raw(TAG.oid, bytes('80 01')), utf8String('a')])])),
  'a value that is a list': commonName(sequence([utf8String('a')])),
  'a constructed string': commonName(raw(0x2c, utf8String('a'))),
  '65 attributes': subject(...Array.from({ length: 65 }, () => make.COMMON_NAME)),
  '65 attributes in one set': subject(setOf(Array(65).fill(sequence([oid('2.5.4.3'), utf8String('a')])))),
  'no attributes field': { attributes: new Uint8Array() },
  'attributes under another tag': { attributes: der.implicit(1, setOf([])) },
  'attributes without their tag': { attributes: setOf([]) },
  'primitive attributes': { attributes: bytes('80 00') },
  'an attribute whose values are missing': attributes(sequence([oid('1.2.3')])),
  'an attribute with an empty set of values': attributes(sequence([oid('1.2.3'), setOf([])])),
  'an attribute whose values are a list': attributes(sequence([oid('1.2.3'), sequence([NULL])])),
  'an attribute with more than type and values': attributes(sequence([oid('1.2.3'), setOf([NULL]), NULL])),
  'a value of an attribute cut short': attributes(sequence([oid('1.2.3'), raw(TAG.set, bytes('04 05 00'))])),
  'a value of indefinite length': attributes(sequence([oid('1.2.3'), raw(TAG.set, bytes('30 80 00 00'))])),
  'a value with a high tag': attributes(sequence([oid('1.2.3'), raw(TAG.set, bytes('1f 01 00'))])),
  'a value nested deeply': attributes(sequence([oid('1.2.3'), setOf([nested(20)])])),
  'something after the attributes': { more: [NULL] },
  'attributes twice': { more: [make.attributesOf()] },
  'something after the signature': { tail: [NULL] },
  'a signature with unused bits': { unusedBits: 1 },
  'no algorithm': { algorithm: new Uint8Array() },
  'an algorithm without a name': { algorithm: sequence([]) },
  'an algorithm that is no list': { algorithm: oid('1.2.840.10045.4.3.2') },
};

export const BAD_SUBJECTS: Table = {
  'an empty common name': commonName(utf8String('')),
  'a common name of 65 characters': commonName(utf8String('a'.repeat(65))),
  'UTF-8 that is too long a form': commonName(raw(TAG.utf8String, bytes('61 c0 80'))),
  'UTF-8 of half a character': commonName(raw(TAG.utf8String, bytes('61 ed a0 80'))),
  'UTF-8 cut short': commonName(raw(TAG.utf8String, bytes('61 e8 af'))),
  'UTF-8 beyond Unicode': commonName(raw(TAG.utf8String, bytes('f5 80 80 80'))),
  'a zero in a name': commonName(utf8String('example.com\0.example.net')),
  'a line break in a name': commonName(utf8String('example.com\n')),
  'a deletion in a name': commonName(utf8String('a\x7f')),
  'a C1 control in a name': commonName(utf8String('a\x85')),
  'a printable string with @': commonName(raw(TAG.printableString, Buffer.from('a@example.com'))),
  'a printable string with _': commonName(raw(TAG.printableString, Buffer.from('a_b'))),
  'a printable string with é': commonName(raw(TAG.printableString, bytes('e9'))),
  'an IA5 string with é': commonName(raw(TAG.ia5String, bytes('e9'))),
  'a numeric string with letters': commonName(raw(TAG.numericString, Buffer.from('12a'))),
  'a BMP string of odd length': commonName(raw(TAG.bmpString, bytes('00 61 00'))),
  'a BMP string with half a pair': commonName(raw(TAG.bmpString, bytes('d8 00 00 61'))),
  'a teletex string': commonName(raw(0x14, Buffer.from('a'))),
  'a universal string': commonName(raw(0x1c, bytes('00 00 00 61'))),
  'a number for a name': commonName(integer(1)),
  'a boolean for a name': commonName(der.boolean(true)),
  'a null for a name': commonName(NULL),
  'a time for a name': commonName(der.time(new Date(0))),
  'a context tag for a name': commonName(bytes('80 01 61')),
  'a country of one letter': subject(name('2.5.4.6', der.printableString('C'))),
  'a country of three letters': subject(name('2.5.4.6', der.printableString('CHN'))),
  'a locality of 129': subject(name('2.5.4.7', utf8String('证'.repeat(129)))),
  'an e-mail address of 256': subject(name('1.2.840.113549.1.9.1', der.ia5String('a'.repeat(256)))),
  'an unknown attribute of 1025': subject(name('1.2.3.4', utf8String('a'.repeat(1025)))),
  'an invalid attribute after a valid one': subject(make.COMMON_NAME, name('2.5.4.10', utf8String(''))),
};

const RSA = sequence([oid('1.2.840.113549.1.1.1'), NULL]);
const P256 = sequence([oid('1.2.840.10045.2.1'), oid('1.2.840.10045.3.1.7')]);
const point = keyPair('p256').spki.subarray(-65);
const parity = point[64]! & 1;
const pointWith = (first: number, length: number) => Uint8Array.from([first, ...point.subarray(1, length)]);
const offCurve = Uint8Array.from(point, (byte, index) => (index === 64 ? byte ^ 1 : byte));
const P256_FIELD = bytes('ffffffff00000001000000000000000000000000ffffffffffffffffffffffff');
const rsaKey = (...numbers: Uint8Array[]) => ({ spki: make.spkiOf(RSA, sequence(numbers)) });
const modulus = integer(Uint8Array.from([0xc1, ...randomBytes(254), 1]));
const exported = (key: ReturnType<typeof generateKeyPairSync>) => ({
  spki: new Uint8Array(key.publicKey.export({ format: 'der', type: 'spki' })),
});
const curve = (namedCurve: string, paramEncoding: 'named' | 'explicit' = 'named') =>
  exported(generateKeyPairSync('ec', { namedCurve, paramEncoding }));

const BAD_RSA_KEYS: Table = {
  'no key': { spki: sequence([]) },
  'RSA without parameters': { spki: make.spkiOf(sequence([oid('1.2.840.113549.1.1.1')]), sequence([modulus])) },
  'RSA with other parameters': { spki: make.spkiOf(sequence([oid('1.2.840.113549.1.1.1'), integer(0)]), NULL) },
  'an RSASSA-PSS key': exported(generateKeyPairSync('rsa-pss', { modulusLength: 2048 })),
  'a negative modulus': rsaKey(raw(TAG.integer, bytes('c1 01')), integer(65537)),
  'a modulus of zero': rsaKey(integer(0), integer(65537)),
  'a padded modulus': rsaKey(raw(TAG.integer, bytes('00 00 c1 01')), integer(65537)),
  'a negative exponent': rsaKey(modulus, raw(TAG.integer, bytes('81'))),
  'an exponent of zero': rsaKey(modulus, integer(0)),
  'no exponent': rsaKey(modulus),
  'a third number': rsaKey(modulus, integer(65537), integer(1)),
  'a modulus of 8200 bits': rsaKey(integer(new Uint8Array(1025).fill(0xc1)), integer(65537)),
  'an RSA key that is not DER': { spki: make.spkiOf(RSA, bytes('30 80 00 00')) },
  'bytes after the RSA key': {
    spki: make.spkiOf(RSA, Buffer.concat([sequence([modulus, integer(65537)]), bytes('00')])),
  },
};

export const BAD_POINTS: Table = {
  'a compressed point': { spki: make.spkiOf(P256, pointWith(2 + parity, 33)) },
  'a hybrid point': { spki: make.spkiOf(P256, pointWith(6 + parity, 65)) },
  'the point at infinity': { spki: make.spkiOf(P256, bytes('00')) },
  'a point cut short': { spki: make.spkiOf(P256, pointWith(4, 64)) },
  'no point': { spki: make.spkiOf(P256, bytes('')) },
  'a point with a byte too many': { spki: make.spkiOf(P256, Uint8Array.from([...point, 0])) },
};

export const OFF_CURVE: Table = {
  'a point off the curve': { spki: make.spkiOf(P256, offCurve) },
  'a coordinate beyond the field': {
    spki: make.spkiOf(P256, Uint8Array.from([4, ...P256_FIELD, ...point.subarray(33)])),
  },
  'a point of zeros': { spki: make.spkiOf(P256, Uint8Array.from([4, ...new Uint8Array(64)])) },
  'a point of P-256 called SM2': { spki: make.spkiOf(SM2_KEY, point) },
  'a point of P-384 of zeros': {
    spki: make.spkiOf(
      sequence([oid('1.2.840.10045.2.1'), oid('1.3.132.0.34')]),
      Uint8Array.from([4, ...new Uint8Array(96)]),
    ),
  },
  'a point of SM2 of zeros': { spki: make.spkiOf(SM2_KEY, Uint8Array.from([4, ...new Uint8Array(64)])) },
};

const OTHER_KEYS: Table = {
  'a key with unused bits': { spki: make.spkiOf(P256, point, 1) },
  'a key with something after it': { spki: sequence([P256, der.bitString(point), NULL]) },
  'a key without a curve': { spki: make.spkiOf(sequence([oid('1.2.840.10045.2.1')]), point) },
  'a curve spelled out': curve('P-256', 'explicit'),
  'P-224': curve('P-224'),
  secp256k1: curve('secp256k1'),
  brainpoolP256r1: curve('brainpoolP256r1'),
  X25519: exported(generateKeyPairSync('x25519')),
  Ed448: exported(generateKeyPairSync('ed448')),
};

export const BAD_KEYS: Table = { ...BAD_RSA_KEYS, ...OTHER_KEYS };

export const EVEN_MODULI: Table = {
  'an even modulus': rsaKey(integer(Uint8Array.from([0xc1, ...randomBytes(254), 2])), integer(65537)),
};

export const BAD_EXPONENTS: Table = {
  'the exponent 1': rsaKey(modulus, integer(1)),
  'the exponent 2': rsaKey(modulus, integer(2)),
  'the exponent 65536': rsaKey(modulus, integer(65536)),
  'an exponent above 2^64': rsaKey(modulus, integer(bytes('01 00 00 00 00 00 00 00 01'))),
};

const rsa = keyPair('rsa2048');
const algorithm = (dotted: string, ...parameters: Uint8Array[]) => ({
  algorithm: sequence([oid(dotted), ...parameters]),
});

export const BROKEN_HASHES: Table = {
  'RSA and SHA-1': { key: rsa, hash: 'sha1', ...algorithm('1.2.840.113549.1.1.5', NULL) },
  'RSA and MD5': { key: rsa, hash: 'md5', ...algorithm('1.2.840.113549.1.1.4', NULL) },
  'RSA and MD4': { key: rsa, ...algorithm('1.2.840.113549.1.1.3', NULL) },
  'RSA and MD2': { key: rsa, ...algorithm('1.2.840.113549.1.1.2', NULL) },
  'RSA and SHA-1, the other name': { key: rsa, hash: 'sha1', ...algorithm('1.3.14.3.2.29', NULL) },
  'ECDSA and SHA-1': { hash: 'sha1', ...algorithm('1.2.840.10045.4.1') },
  'DSA and SHA-1': algorithm('1.2.840.10040.4.3'),
};

const PSS = '1.2.840.113549.1.1.10';
const pss = { key: rsa, pssSalt: 32 };
export const BAD_ALGORITHMS: Table = {
  'RSA named, ECDSA used': { algorithm: make.rsaAlgorithm('sha256') },
  'ECDSA named, RSA used': { key: rsa, algorithm: make.ecdsaAlgorithm('sha256') },
  'PSS named, ECDSA used': { algorithm: make.pssAlgorithm({}) },
  'RSA without parameters': { key: rsa, ...algorithm('1.2.840.113549.1.1.11') },
  'RSA with other parameters': { key: rsa, ...algorithm('1.2.840.113549.1.1.11', integer(0)) },
  'RSA with parameters twice': { key: rsa, ...algorithm('1.2.840.113549.1.1.11', NULL, NULL) },
  'ECDSA with parameters': algorithm('1.2.840.10045.4.3.2', NULL),
  'RSA and SHA-224': { key: rsa, hash: 'sha224', ...algorithm('1.2.840.113549.1.1.14', NULL) },
  'ECDSA and SHA-224': { hash: 'sha224', ...algorithm('1.2.840.10045.4.3.1') },
  'ECDSA and SHA3-256': { hash: 'sha3-256', ...algorithm('2.16.840.1.101.3.4.3.10') },
  'RSA without a hash': { key: rsa, ...algorithm('1.2.840.113549.1.1.1', NULL) },
  'PSS without parameters': { key: rsa, ...algorithm(PSS) },
  'PSS by default, which is SHA-1': { key: rsa, hash: 'sha1', pssSalt: 20, ...algorithm(PSS, sequence([])) },
  'PSS with another hash inside': { ...pss, algorithm: make.pssAlgorithm({ mgf: 'sha384' }) },
  'PSS with a short salt': { key: rsa, pssSalt: 20, algorithm: make.pssAlgorithm({ salt: 20 }) },
  'PSS with a long salt': { key: rsa, pssSalt: 222, algorithm: make.pssAlgorithm({ salt: 222 }) },
  'PSS with the default written out': { ...pss, algorithm: make.pssAlgorithm({ more: [der.explicit(3, integer(1))] }) },
  Ed25519: algorithm('1.3.101.112'),
  'SM2 and SM3': algorithm('1.2.156.10197.1.501'),
  // What node:crypto produces with a key on that curve.
  'ECDSA by an SM2 key': curve('SM2'),
  'an unknown algorithm': algorithm('1.2.3.4'),
};

const zeros = (length: number) => () => new Uint8Array(length);
export const BAD_SIGNATURES: Table = {
  'the key of another': { spki: make.newKeyPair('p256').spki },
  'an RSA key of another': { key: rsa, spki: make.newKeyPair('rsa2048').spki },
  'another hash than named': { hash: 'sha256', algorithm: make.ecdsaAlgorithm('sha384') },
  'another hash than named, RSA': { key: rsa, algorithm: make.rsaAlgorithm('sha512') },
  'no signature': { signature: zeros(0) },
  zeros: { signature: zeros(70) },
  'zeros, RSA': { key: rsa, signature: zeros(256) },
  'an RSA signature cut short': { key: rsa, signature: (right) => right.subarray(1) },
  'an RSA signature with a zero before it': { key: rsa, signature: (right) => Uint8Array.from([0, ...right]) },
  'an RSA signature with a byte after it': { key: rsa, signature: (right) => Uint8Array.from([...right, 0]) },
  'r and s without DER': { signature: (right) => Uint8Array.from(right.subarray(-64)) },
  'r and s of zero': { signature: () => sequence([integer(0), integer(0)]) },
  'r and s of one': { signature: () => sequence([integer(1), integer(1)]) },
  'ECDSA with a byte after it': { signature: (right) => Uint8Array.from([...right, 0]) },
  'ECDSA with a padded length': { signature: (right) => Uint8Array.from([0x30, 0x81, ...right.subarray(1)]) },
  'PSS named, PKCS #1 used': { key: rsa, algorithm: make.pssAlgorithm({}) },
  'PKCS #1 named, PSS used': pss,
  'PSS with a shorter salt than named': { key: rsa, pssSalt: 20, algorithm: make.pssAlgorithm({}) },
  'the signature of other text': {
    signature: () => der.sequence([integer(randomBytes(32)), integer(randomBytes(32))]),
  },
};

export const VALID_CSRS: Table = {
  'an empty subject': subject(),
  'empty attributes': attributes(),
  'every kind of string': subject(
    name('2.5.4.3', der.ia5String('example.com')),
    name('2.5.4.5', raw(TAG.numericString, Buffer.from('0 9'))),
    name('2.5.4.6', der.printableString('CN')),
    name('2.5.4.10', raw(TAG.bmpString, Buffer.from('证书', 'utf16le').swap16())),
    name('1.2.840.113549.1.9.1', der.ia5String('a@example.com')),
  ),
  'a wildcard and an ampersand as printable strings': subject(
    name('2.5.4.3', raw(TAG.printableString, Buffer.from('*.example.com'))),
    name('2.5.4.10', raw(TAG.printableString, Buffer.from('A & B'))),
  ),
  'two attributes in one name': subject(
    setOf([sequence([oid('2.5.4.3'), utf8String('a')]), sequence([oid('2.5.4.11'), utf8String('b')])]),
  ),
  'the same attribute twice': subject(make.COMMON_NAME, make.COMMON_NAME),
  '64 attributes': subject(...Array.from({ length: 64 }, () => make.COMMON_NAME)),
  '64 characters of 4 bytes': commonName(utf8String('🔏'.repeat(64))),
  'an unknown attribute': subject(name('1.3.6.1.4.1.99999.1', utf8String('a'.repeat(1024)))),
  'a challenge password': attributes(sequence([oid('1.2.840.113549.1.9.7'), setOf([utf8String('secret')])])),
  'an unknown attribute with many values': attributes(
    sequence([oid('1.2.3'), setOf(Array.from({ length: 1000 }, (_, index) => integer(index)))]),
  ),
  'unsorted attributes': {
    attributes: der.raw(0xa0, Buffer.concat([make.EXTENSION_REQUEST, sequence([oid('1.2.3'), setOf([NULL])])])),
  },
};
