// Generates, wraps and signs with the keys that the service holds for customers. Slow operations run in the worker pool.
import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeyKind } from '../../domain/cloud-keys/cloud-key.ts';
import type { KeyMaker } from '../../domain/cloud-keys/ports.ts';
import { readPublicKey } from '../ca/public-key.ts';
import type { JobRunner } from '../workers/pool.ts';
import { unwrapKey, wrapKey } from './wrapped-key.ts';

const generate = promisify(generateKeyPair);
const CURVES = { p256: 'P-256', p384: 'P-384', p521: 'P-521' } as const;

export function keyMaker(pool: JobRunner, serviceSecret: Uint8Array): KeyMaker {
  const contextOf = (keyId: string) => ({ serviceSecret, binding: `cloud_key/${keyId}`, pool });
  async function generatePair({ type, bits }: KeyKind): Promise<{ pkcs8: Uint8Array; spki: Uint8Array }> {
    if (type === 'rsa') return await pool.run('rsaKey', { bits });
    if (type === 'sm2') return await pool.run('sm2Key');
    // Ed25519 signs messages, and the signing API has digests only: newKeyKind never asks for one.
    if (type === 'ed25519') throw new RangeError('no cloud-held key is Ed25519');
    const { privateKey, publicKey } = await generate('ec', { namedCurve: CURVES[type] });
    return {
      pkcs8: privateKey.export({ type: 'pkcs8', format: 'der' }),
      spki: publicKey.export({ type: 'spki', format: 'der' }),
    };
  }
  return {
    async make(kind) {
      const { pkcs8, spki } = await generatePair(kind);
      return { publicKey: readPublicKey(spki), privateKey: pkcs8 };
    },
    async envelope({ privateKey }, recipient) {
      const { envelope } = await pool.run('sm2Envelope', { pkcs8: privateKey, recipient: recipient.spki });
      return envelope;
    },
    wrap: (privateKey, pin, keyId) => wrapKey(privateKey, pin.reveal(), contextOf(keyId)),
    unwrap: (wrappedKey, pin, keyId) => unwrapKey(wrappedKey, pin.reveal(), contextOf(keyId)),
    async sign(privateKey, { spki }, signHash, digest) {
      const { signature } = await pool.run('signDigest', { pkcs8: privateKey, spki, signHash, digest });
      return signature;
    },
  };
}
