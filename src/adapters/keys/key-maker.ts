// Makes and locks the keys that the service holds for its customers. What takes long runs in the pool of workers.
import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeyKind } from '../../domain/cloud-keys/cloud-key.ts';
import type { KeyMaker } from '../../domain/cloud-keys/ports.ts';
import { readPublicKey } from '../ca/public-key.ts';
import type { Pool } from '../workers/pool.ts';
import { lock, unlock } from './locked-key.ts';

const generate = promisify(generateKeyPair);
const CURVES = { p256: 'P-256', p384: 'P-384', p521: 'P-521' } as const;

const bindingOf = (keyId: string): string => `cloud_key/${keyId}`;

export function keyMaker(pool: Pool, serviceSecret: Uint8Array): KeyMaker {
  async function pairOf({ type, bits }: KeyKind): Promise<{ pkcs8: Uint8Array; spki: Uint8Array }> {
    if (type === 'rsa') return await pool.run('rsaKey', { bits });
    if (type === 'sm2') return await pool.run('sm2Key');
    const { privateKey, publicKey } = await generate('ec', { namedCurve: CURVES[type] });
    return {
      pkcs8: privateKey.export({ type: 'pkcs8', format: 'der' }),
      spki: publicKey.export({ type: 'spki', format: 'der' }),
    };
  }
  return {
    async make(kind) {
      const { pkcs8, spki } = await pairOf(kind);
      return { publicKey: readPublicKey(spki), privateKey: pkcs8 };
    },
    async envelope({ privateKey }, recipient) {
      const { envelope } = await pool.run('sm2Envelope', { pkcs8: privateKey, recipient: recipient.spki });
      return envelope;
    },
    lock: (privateKey, pin, keyId) => lock(privateKey, pin.reveal(), serviceSecret, bindingOf(keyId), pool),
    unlock: (locked, pin, keyId) => unlock(locked, pin.reveal(), serviceSecret, bindingOf(keyId), pool),
    async sign(privateKey, { spki }, signHash, digest) {
      const { signature } = await pool.run('signDigest', { pkcs8: privateKey, spki, signHash, digest });
      return signature;
    },
  };
}
