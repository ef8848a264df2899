// Encryption at rest: AES-256-GCM under a key from a file or the environment. A sealed value names its key, so that keys
// can be rotated, and is bound to its row, so that it opens nowhere else.
//
// Format: v1.<key id>.<nonce>.<ciphertext and tag>, the last two in base64url.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface Sealer {
  seal(text: string, binding: string): string;
  /** Throws SealBroken if the value was altered, moved, or sealed under an unknown key. */
  open(sealed: string, binding: string): string;
  /** Whether the value is sealed under a key other than the newest. */
  isStale(sealed: string): boolean;
}

export class SealBroken extends Error {}

export interface SealKey {
  readonly id: string;
  readonly bytes: Buffer;
}

/** The id is derived from the key, so that all instances agree on it. */
function sealKey(bytes: Buffer): SealKey {
  return { id: createHash('sha256').update('reseal seal key id').update(bytes).digest('hex').slice(0, 8), bytes };
}

export const newSealKey = (): SealKey => sealKey(randomBytes(KEY_BYTES));

/** Parses base64 keys, newest first, separated by white space or commas. Undefined if the text is anything else. */
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
