// Known-answer tests of SM2, SM3 and SM4. Whether Node supports SM2 depends on its OpenSSL: some builds have none, and a
// faulty one would issue certificates that no client can verify. Runs once at start-up; on failure SM2 is disabled.
import { createCipheriv } from 'node:crypto';
import { integer, octetString, sequence } from '../der/writer.ts';
import { KEY_ALGORITHM } from './curve.ts';
import { newSm2Key, openSm2PrivateKey, openSm2PublicKey, sm2Sign, sm2Spki, sm2Verify, sm2Z } from './sm2.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Test vector of GM/T 0003.5, appendix A. */
const EXAMPLE = {
  scalar: hex('3945208f7b2144b13f36e38ac6d39f95 889393692860b51a42fb81ef4df7c5b8'),
  point: hex(
    '04 09f9df311e5421a150dd7d161e4bc5c6 72179fad1833fc076bb08ff356f35020 ccea490ce26775a52dc6ea718cc1aa60 0aed05fbf35e084a6632f6072da9ad13',
  ),
  message: Buffer.from('message digest'),
  z: 'b2e14c5c79c6df5b85f4fe7ed8db7a262b9da7e07ccb0ea9f4747b8ccda8a4f3',
  r: hex('f5a03b0648d2c4630eeac513e1bb81a1 5944da3827d5b74143ac7eaceee720b3'),
  s: hex('b1b6aa29df212fd8763182bc0d421ca1 bb9038fd1f7f42d4840b69c485bbc1aa'),
} as const;
const TAMPERED = Buffer.from('message digesT');

/** Test vector of GB/T 32907, appendix A.1: the block is also the key. */
const SM4_BLOCK = hex('0123456789abcdeffedcba9876543210');
const SM4_ANSWER = '681edf34d206965e86b3e94f536e4246';

/** The functions under test. */
export interface Sm2Functions {
  readonly newKey: typeof newSm2Key;
  readonly z: typeof sm2Z;
  readonly sign: typeof sm2Sign;
  readonly verify: typeof sm2Verify;
  /** SM4 in ECB mode, without padding. */
  readonly sm4: (key: Uint8Array, block: Uint8Array) => Uint8Array;
}

const DEFAULT_FUNCTIONS: Sm2Functions = {
  newKey: newSm2Key,
  z: sm2Z,
  sign: sm2Sign,
  verify: sm2Verify,
  sm4: (key, block) => createCipheriv('sm4-ecb', key, null).setAutoPadding(false).update(block),
};

/** Returns null if all tests pass, else why SM2 must be disabled. Never throws. Takes a few milliseconds. */
export function sm2Fault({ newKey, z, sign, verify, sm4 }: Sm2Functions = DEFAULT_FUNCTIONS): string | null {
  try {
    const { message, point, scalar, r, s } = EXAMPLE;
    const publicKey = openSm2PublicKey(sm2Spki(point));
    const ecKey = octetString(sequence([integer(1), octetString(scalar)]));
    const privateKey = openSm2PrivateKey(sequence([integer(0), KEY_ALGORITHM, ecKey]));
    const published = sequence([integer(r), integer(s)]);
    const own = sign(privateKey, message);
    if (Buffer.compare(privateKey.publicKey.point, point) !== 0) return 'the public half of the example key is wrong';
    if (Buffer.from(z(point)).toString('hex') !== EXAMPLE.z) return 'Z of the example key is wrong';
    if (!verify(publicKey, message, published)) return 'the published signature does not verify';
    if (verify(publicKey, TAMPERED, published)) return 'the published signature verifies for another message';
    if (!verify(publicKey, message, own)) return 'a signature of its own does not verify';
    if (verify(publicKey, TAMPERED, own)) return 'a signature of its own verifies for another message';
    if (Buffer.from(sm4(SM4_BLOCK, SM4_BLOCK)).toString('hex') !== SM4_ANSWER) return 'SM4 of the example is wrong';
    const { pkcs8, spki } = newKey();
    const made = openSm2PrivateKey(pkcs8);
    pkcs8.fill(0);
    if (!verify(openSm2PublicKey(spki), message, sign(made, message))) return 'a new key does not verify what it signs';
    return null;
  } catch (error) {
    return `the cryptography library cannot do it: ${error instanceof Error ? error.message : error}`;
  }
}
