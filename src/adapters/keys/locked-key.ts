// A private key that takes two things to open: a secret of the service's and a PIN of its owner's. Neither whoever
// steals the store nor whoever runs the service can use the key without the PIN; how often one may guess is decided
// elsewhere.
//
// Form: k1.<parameters>.<salt>.<nonce>.<ciphertext and tag>.<mac>, all but the first two in base64url. Argon2id makes
// the key of the PIN, the salt, the secret and the binding; AES-256-GCM encrypts with it. The parameters are part of the
// text, so that they can be raised without the PINs of the keys that are locked already.
//
// The cipher's tag cannot tell a wrong PIN from an altered text. The last part can: it authenticates the rest and the
// binding under the secret alone. So a damaged row or a wrong secret never counts as a guess of the owner's, and no
// altered text makes the service spend the memory it asks for.
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Argon2Input } from '../workers/jobs.ts';
import type { Pool } from '../workers/pool.ts';

type Cost = Pick<Argon2Input, 'memory' | 'passes' | 'parallelism'>;

/** What OWASP asks for at least: 19 MiB, two passes. */
const COST: Cost = { memory: 19_456, passes: 2, parallelism: 1 };
/** What is read back costs no less than the first keys did, and no more than a worker can do in its time. */
const MOST: Cost = { memory: 262_144, passes: 8, parallelism: 4 };

const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const MIN_SECRET_BYTES = 32;
const CIPHER = 'aes-256-gcm';
const MAC_LABEL = 'reseal locked key';

const FORM =
  /^(k1\.m([1-9]\d{0,9})t([1-9]\d{0,9})p([1-9]\d{0,9})\.([\w-]{22})\.([\w-]{16})\.([\w-]{22,}))\.([\w-]{43})$/;

/** The text was altered, belongs elsewhere, or was locked under another secret. It is not about the PIN. */
export class LockBroken extends Error {}

export async function lock(
  pkcs8: Uint8Array,
  pin: string,
  serviceSecret: Uint8Array,
  binding: string,
  pool: Pick<Pool, 'run'>,
): Promise<string> {
  requireLong(serviceSecret);
  if (!pin.isWellFormed()) throw new TypeError('half a character has no UTF-8');
  const salt = randomBytes(SALT_BYTES);
  const nonce = randomBytes(NONCE_BYTES);
  const key = await derive({ pin, salt, serviceSecret, binding, cost: COST, pool });
  try {
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(binding));
    const body = Buffer.concat([cipher.update(pkcs8), cipher.final(), cipher.getAuthTag()]);
    const cost = `m${COST.memory}t${COST.passes}p${COST.parallelism}`;
    const text = `k1.${cost}.${[salt, nonce, body].map((part) => part.toString('base64url')).join('.')}`;
    return `${text}.${macOf(text, binding, serviceSecret)}`;
  } finally {
    key.fill(0);
  }
}

/**
 * The PKCS#8, which is the caller's to wipe, or null for a wrong PIN; a LockBroken when it is not about the PIN. A wrong
 * PIN takes as long as the right one: what differs is one comparison, after everything else.
 */
export async function unlock(
  locked: string,
  pin: string,
  serviceSecret: Uint8Array,
  binding: string,
  pool: Pick<Pool, 'run'>,
): Promise<Uint8Array | null> {
  requireLong(serviceSecret);
  const { cost, salt, nonce, body } = read(locked, binding, serviceSecret);
  // No key is locked under half a character, and as UTF-8 all of them would be the same.
  if (!pin.isWellFormed()) return null;
  const key = await derive({ pin, salt, serviceSecret, binding, cost, pool });
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  key.fill(0);
  decipher.setAAD(Buffer.from(binding)).setAuthTag(body.subarray(-TAG_BYTES));
  const pkcs8 = decipher.update(body.subarray(0, -TAG_BYTES));
  try {
    decipher.final();
    return pkcs8;
  } catch {
    pkcs8.fill(0);
    return null;
  }
}

interface Derivation {
  readonly pin: string;
  readonly salt: Uint8Array;
  readonly serviceSecret: Uint8Array;
  readonly binding: string;
  readonly cost: Cost;
  readonly pool: Pick<Pool, 'run'>;
}

/**
 * NFC, as RFC 8265 has it for passwords: some keyboards write é as one character and others as two. Nothing more:
 * characters that differ to the eye differ here, spaces and case count. The string itself cannot be wiped.
 */
async function derive({ pin, salt, serviceSecret, binding, cost, pool }: Derivation): Promise<Uint8Array> {
  const message = Buffer.from(pin.normalize('NFC'));
  try {
    const { key } = await pool.run('argon2', {
      message,
      nonce: salt,
      secret: serviceSecret,
      associatedData: Buffer.from(binding),
      tagLength: KEY_BYTES,
      ...cost,
    });
    return key;
  } finally {
    message.fill(0);
  }
}

function read(
  locked: string,
  binding: string,
  serviceSecret: Uint8Array,
): { cost: Cost; salt: Uint8Array; nonce: Uint8Array; body: Uint8Array } {
  const [, text = '', memory, passes, parallelism, salt = '', nonce = '', body = '', mac = ''] =
    FORM.exec(locked) ?? [];
  const cost: Cost = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) };
  for (const name of ['memory', 'passes', 'parallelism'] as const) {
    // NaN is no number of ours either.
    if (!(cost[name] >= COST[name] && cost[name] <= MOST[name])) {
      throw new LockBroken(text === '' ? 'not a locked key' : `${name} out of bounds`);
    }
  }
  // As text, so that there is one form of it: base64 has several for the same bytes.
  if (!timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(text, binding, serviceSecret)))) {
    throw new LockBroken('the locked key was altered, belongs elsewhere, or needs another secret');
  }
  const bytes = (part: string) => Buffer.from(part, 'base64url');
  return { cost, salt: bytes(salt), nonce: bytes(nonce), body: bytes(body) };
}

/** The text has no NUL in it, so none of the three can be taken for a part of another. */
const macOf = (text: string, binding: string, serviceSecret: Uint8Array): string =>
  createHmac('sha256', serviceSecret).update(`${MAC_LABEL}\0${text}\0${binding}`).digest('base64url');

function requireLong(serviceSecret: Uint8Array): void {
  if (serviceSecret.length < MIN_SECRET_BYTES) throw new TypeError(`a secret needs ${MIN_SECRET_BYTES} bytes`);
}
