// A grant to sign: the private key under a token that its owner takes away and the service forgets. What is stored
// opens with that token only.
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import type { SigningGrant } from '../../domain/cloud-keys/ports.ts';
import { Secret } from '../../domain/secret.ts';
import { hashOfSecret } from '../access/authenticate-caller.ts';

const TOKEN_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

type For = Pick<SigningGrant, 'accountId' | 'keyId' | 'hashes' | 'expiresAt'>;

export function newGrant(
  grant: For,
  privateKey: Uint8Array,
  randomBytes: (count: number) => Uint8Array,
): { readonly grant: SigningGrant; readonly token: Secret } {
  const token = new Secret(Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url'));
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', keyFrom(token), nonce).setAAD(bindingOf(grant));
  const locked = Buffer.concat([nonce, cipher.update(privateKey), cipher.final(), cipher.getAuthTag()]);
  return { grant: { ...grant, tokenHash: tokenHash(token), locked: locked.toString('base64') }, token };
}

/** Whoever has the result wipes it after use. */
export function openGrant(grant: SigningGrant, token: Secret): Uint8Array {
  const bytes = Buffer.from(grant.locked, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', keyFrom(token), bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(bindingOf(grant)).setAuthTag(bytes.subarray(-TAG_BYTES));
  const privateKey = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  decipher.final();
  return privateKey;
}

export const tokenHash = (token: Secret): string => hashOfSecret(token.reveal());

/** The token is random already: this only keeps the key apart from the hash that names the grant. */
const keyFrom = (token: Secret): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', token.reveal(), '', 'reseal signing grant', 32));

/** Whoever can write into the database can neither move a grant to another key nor give it other hashes. */
const bindingOf = ({ accountId, keyId, hashes, expiresAt }: For): Buffer =>
  Buffer.from([accountId, keyId, expiresAt, ...hashes].join('/'));
