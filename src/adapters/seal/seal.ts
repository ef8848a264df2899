// Encryption at rest: AES-256-GCM under a key from a file or the environment. A sealed value names its key, so that keys
// can be rotated, and is bound to its row, so that it opens nowhere else.
//
// Format: v1.<key id>.<nonce>.<ciphertext and tag>, the last two in base64url.
import { createCipheriv, createDecipheriv, createHash, createSecretKey, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

declare const isSealed: unique symbol;
/** A sealed value. Opaque, though a string at run time: it fits only into columns that the schema declares as Sealed. */
export interface Sealed {
  readonly [isSealed]: true;
}

export interface Sealer {
  /** Ids of its keys, as configured. A rotation goes to the first. */
  readonly keyIds: readonly [string, ...string[]];
  /** Id of the key that seals: the first, until `use` names another. */
  readonly activeKeyId: string;
  /** Throws SealBroken if there is no such key. */
  use(keyId: string): void;
  seal(text: string, binding: string): Sealed;
  /** Throws SealBroken if the value was altered, moved, or sealed under an unknown key. */
  open(sealed: Sealed, binding: string): string;
}

export const keyIdOf = (sealed: Sealed): string => String(sealed).split('.')[1] ?? '';

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

export function sealerWith([first, ...others]: readonly SealKey[]): Sealer {
  if (!first) throw new TypeError('a sealer needs at least one key');
  // Given bytes instead of a key object, a cipher takes ten times as long to open.
  const opened = ({ id, bytes }: SealKey) => ({ id, key: createSecretKey(bytes) });
  const keys = [opened(first), ...others.map(opened)] as const;
  let [active] = keys;
  function keyNamed(keyId: string | undefined): typeof active {
    const key = keys.find(({ id }) => id === keyId);
    if (!key) throw new SealBroken(`no seal key with id ${keyId}`);
    return key;
  }
  return {
    keyIds: [first.id, ...others.map(({ id }) => id)],
    get activeKeyId() {
      return active.id;
    },
    use(keyId) {
      active = keyNamed(keyId);
    },

    seal(text, binding) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', active.key, nonce).setAAD(Buffer.from(binding));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      const value: unknown = `v1.${active.id}.${nonce.toString('base64url')}.${sealed.toString('base64url')}`;
      return value as Sealed;
    },

    open(sealed, binding) {
      const [version, keyId, nonce = '', body = ''] = String(sealed).split('.');
      if (version !== 'v1') throw new SealBroken('not a sealed value');
      const { key } = keyNamed(keyId);
      const bytes = Buffer.from(body, 'base64url');
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'), {
          authTagLength: TAG_BYTES,
        });
        decipher.setAAD(Buffer.from(binding)).setAuthTag(bytes.subarray(-TAG_BYTES));
        return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8');
      } catch (cause) {
        throw new SealBroken('the sealed value was altered or belongs elsewhere', { cause });
      }
    },
  };
}
