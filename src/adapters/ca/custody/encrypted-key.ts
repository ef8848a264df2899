// A private key under a passphrase, as PKCS#8 (EncryptedPrivateKeyInfo, RFC 5958) with PBES2, scrypt (RFC 7914) and
// AES-256-CBC. `openssl pkey -in FILE` opens it. node:crypto would write it with 2048 rounds of PBKDF2.
import { createCipheriv, createPrivateKey, type KeyObject, scryptSync } from 'node:crypto';
import { pem } from '../../../domain/certificate/pem.ts';
import { EXIT, Problem } from '../../../kernel/problem.ts';
import { integer, octetString, oid, sequence } from '../../der/writer.ts';
import { randomBytes } from '../../seal/random.ts';

/** 16 MiB and about a quarter of a second. openssl refuses parameters that need more than 32 MiB. */
const SCRYPT = { N: 2 ** 14, r: 8, p: 5 } as const;
const KEY_BYTES = 32;
const SALT_BYTES = 32;
const IV_BYTES = 16;

const PBES2 = oid('1.2.840.113549.1.5.13');
const SCRYPT_ID = oid('1.3.6.1.4.1.11591.4.11');
const AES_256_CBC = oid('2.16.840.1.101.3.4.1.42');

/** Six words of a dice list. What is shorter is guessed by those who get hold of the file. */
const MIN_PASSPHRASE = 16;
const MAX_PASSPHRASE = 1_000;

export function requirePassphrase(passphrase: string): void {
  if (passphrase.length >= MIN_PASSPHRASE && passphrase.length <= MAX_PASSPHRASE) return;
  throw new Problem(
    EXIT.usage,
    `the passphrase has ${passphrase.length} characters`,
    `Use at least ${MIN_PASSPHRASE}, such as six words drawn at random.`,
  );
}

/** PEM. */
export function encryptedKey(pkcs8: Uint8Array, passphrase: string): string {
  const [salt, iv] = [randomBytes(SALT_BYTES), randomBytes(IV_BYTES)];
  const key = scryptSync(passphrase, salt, KEY_BYTES, SCRYPT);
  const cipher = createCipheriv('aes-256-cbc', key, iv);
  const encrypted = Buffer.concat([cipher.update(pkcs8), cipher.final()]);
  key.fill(0);
  const kdf = sequence([
    SCRYPT_ID,
    sequence([octetString(salt), integer(SCRYPT.N), integer(SCRYPT.r), integer(SCRYPT.p), integer(KEY_BYTES)]),
  ]);
  const algorithm = sequence([PBES2, sequence([kdf, sequence([AES_256_CBC, octetString(iv)])])]);
  return pem('ENCRYPTED PRIVATE KEY', sequence([algorithm, octetString(encrypted)]));
}

/** Reads PKCS#8 in PEM, with or without a passphrase. Throws a Problem. */
export function openEncryptedKey(text: string, passphrase: string): KeyObject {
  try {
    return createPrivateKey({ key: text, passphrase });
  } catch (error) {
    throw new Problem(
      EXIT.refused,
      'the key does not open',
      'Give the file of reseal ca root export, unaltered, and the passphrase that it was written with.',
      { cause: error },
    );
  }
}
