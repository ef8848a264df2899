// Signing grants: the private key, wrapped under a random token. The caller keeps the token and the service forgets it,
// so a stored grant cannot be opened without the caller.
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import type { SigningGrant } from '../../domain/cloud-keys/ports.ts';
import { Secret } from '../../domain/secret.ts';
import { hashOfSecret } from '../access/authenticate-caller.ts';

const TOKEN_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

type GrantTerms = Pick<SigningGrant, 'accountId' | 'keyId' | 'hashes' | 'expiresAt' | 'certificateId'>;

export function newGrant(
  terms: GrantTerms,
  privateKey: Uint8Array,
  randomBytes: (count: number) => Uint8Array,
): { readonly grant: SigningGrant; readonly token: Secret } {
  const token = new Secret(Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url'));
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', keyFrom(token), nonce).setAAD(bindingOf(terms));
  const wrappedKey = Buffer.concat([nonce, cipher.update(privateKey), cipher.final(), cipher.getAuthTag()]);
  return { grant: { ...terms, tokenHash: tokenHash(token), wrappedKey: wrappedKey.toString('base64') }, token };
}

/** Returns the private key, which the caller wipes. */
export function openGrant(grant: SigningGrant, token: Secret): Uint8Array {
  const bytes = Buffer.from(grant.wrappedKey, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', keyFrom(token), bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(bindingOf(grant)).setAuthTag(bytes.subarray(-TAG_BYTES));
  const privateKey = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  decipher.final();
  return privateKey;
}

export const tokenHash = (token: Secret): string => hashOfSecret(token.reveal());

/** Key separation: the stored hash of the token must not reveal the wrapping key. The token has enough entropy. */
const keyFrom = (token: Secret): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', token.reveal(), '', 'reseal signing grant', 32));

/** Prevents an attacker with write access to the database from moving a grant to another key or other hashes. */
const bindingOf = ({ accountId, keyId, hashes, expiresAt }: Omit<GrantTerms, 'certificateId'>): Buffer =>
  Buffer.from([accountId, keyId, expiresAt, ...hashes].join('/'));
