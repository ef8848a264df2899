// Sealing at rest: AES-256-GCM under a key from a file or the environment. Every sealed value names its key, so
// that keys can be rotated, and is bound to its place, so that it opens nowhere else.
//
// Form: v1.<key id>.<nonce>.<ciphertext and tag>, the last two in base64url.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface Sealer {
  seal(text: string, binding: string): string;
  /** Throws SealBroken when the value was altered, moved to another place, or sealed under a key we do not have. */
  open(sealed: string, binding: string): string;
  /** True when the value is sealed under a key that is no longer the newest. */
  isStale(sealed: string): boolean;
}

export class SealBroken extends Error {}

export interface SealKey {
  readonly id: string;
  readonly bytes: Buffer;
}

/** The id is derived from the key, so that the same key has the same id on every instance. */
export function sealKey(bytes: Buffer): SealKey {
  return { id: createHash('sha256').update('reseal seal key id').update(bytes).digest('hex').slice(0, 8), bytes };
}

export const newSealKey = (): SealKey => sealKey(randomBytes(KEY_BYTES));

/** Base64 keys, the newest first, separated by white space or commas; undefined when the text is not that. */
export function parseSealKeys(text: string): SealKey[] | undefined {
  const keys = text.split(/[\s,]+/).filter((part) => part !== '');
  const isKey = (key: string) => /^[A-Za-z0-9+/]{43}=?$/.test(key);
  return keys.length > 0 && keys.every(isKey) ? keys.map((key) => sealKey(Buffer.from(key, 'base64'))) : undefined;
}

export function sealerWith(keys: readonly SealKey[]): Sealer {
  const [newest] = keys;
  if (!newest) throw new TypeError('a sealer needs at least one key');
  return {
    seal(text, binding) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', newest.bytes, nonce).setAAD(Buffer.from(binding));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return `v1.${newest.id}.${nonce.toString('base64url')}.${sealed.toString('base64url')}`;
    },

    open(sealed, binding) {
      const [version, keyId, nonce = '', body = ''] = sealed.split('.');
      const key = keys.find(({ id }) => id === keyId);
      if (version !== 'v1' || !key) throw new SealBroken(`no seal key with id ${keyId}`);
      const bytes = Buffer.from(body, 'base64url');
      try {
        const decipher = createDecipheriv('aes-256-gcm', key.bytes, Buffer.from(nonce, 'base64url'), {
          authTagLength: TAG_BYTES,
        });
        decipher.setAAD(Buffer.from(binding)).setAuthTag(bytes.subarray(-TAG_BYTES));
        return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8');
      } catch (cause) {
        throw new SealBroken('the sealed value was altered or belongs elsewhere', { cause });
      }
    },

    isStale: (sealed) => sealed.split('.')[1] !== newest.id,
  };
}
