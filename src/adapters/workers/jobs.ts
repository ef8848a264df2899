// CPU-bound jobs that would block the event loop. Each is a pure function of its input, takes milliseconds and runs in a
// worker, which wipes input and output afterwards.
import { argon2Sync, generateKeyPairSync } from 'node:crypto';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import { readPublicKey } from '../ca/public-key.ts';
import { envelopedKey } from '../sm2/envelope.ts';
import { newSm2Key, openSm2PrivateKey, openSm2PublicKey, sm2Scalar } from '../sm2/sm2.ts';
import { csrFindings } from './csr-findings.ts';
import type { Jobs } from './packet.ts';
import { signDigest } from './sign-digest.ts';

/** Parameter names are those of node:crypto: message is the password, nonce the salt; memory is in KiB. */
export type Argon2Input = {
  readonly message: Uint8Array;
  readonly nonce: Uint8Array;
  readonly secret: Uint8Array;
  readonly associatedData: Uint8Array;
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
  readonly tagLength: number;
};

type DigestInput = {
  readonly pkcs8: Uint8Array;
  readonly spki: Uint8Array;
  readonly signHash: SignHash;
  readonly digest: Uint8Array;
};

export const JOBS = {
  argon2: (input: Argon2Input): { key: Uint8Array } => ({ key: argon2Sync('argon2id', input) }),

  /** SM2EnvelopedKey of a private key (PKCS#8), encrypted to a public key (SPKI). */
  sm2Envelope({ pkcs8, recipient }: { pkcs8: Uint8Array; recipient: Uint8Array }): { envelope: Uint8Array } {
    const { publicKey } = openSm2PrivateKey(pkcs8);
    const scalar = sm2Scalar(pkcs8);
    try {
      return { envelope: envelopedKey({ scalar, point: publicKey.point }, openSm2PublicKey(recipient).point) };
    } finally {
      scalar.fill(0);
    }
  },

  inspectCsr: csrFindings,

  signDigest({ pkcs8, spki, signHash, digest }: DigestInput): { signature: Uint8Array } {
    return { signature: signDigest(pkcs8, readPublicKey(spki), signHash, digest) };
  },

  sm2Key: (): { pkcs8: Uint8Array; spki: Uint8Array } => newSm2Key(),

  rsaKey({ bits }: { bits: number }): { pkcs8: Uint8Array; spki: Uint8Array } {
    const { privateKey: pkcs8, publicKey: spki } = generateKeyPairSync('rsa', {
      modulusLength: bits,
      privateKeyEncoding: { type: 'pkcs8', format: 'der' },
      publicKeyEncoding: { type: 'spki', format: 'der' },
    });
    return { pkcs8, spki };
  },
} satisfies Jobs;
