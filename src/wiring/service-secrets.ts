// Secrets of the service itself: one root in the sealed store, and a secret derived from it for each purpose, so that what
// one purpose reveals says nothing about another. Stores from before used one secret for all purposes; keys are wrapped
// and challenges published under it, so they keep it.
import { hkdfSync } from 'node:crypto';
import { randomBytes } from '../adapters/seal/random.ts';
import type { Store } from '../domain/store.ts';

type Purpose = 'acme nonces' | 'cloud-key wrapping' | 'domain validation' | 'request digest';

const ROOT = 'service-secret';
const SHARED = 'cloud-key-secret';
const BYTES = 32;

export async function serviceSecrets({ secrets }: Pick<Store, 'secrets'>): Promise<(purpose: Purpose) => Uint8Array> {
  const shared = await secrets.get(SHARED);
  if (shared !== undefined) return () => Buffer.from(shared, 'base64');
  const root = Buffer.from(await secrets.claim(ROOT, Buffer.from(randomBytes(BYTES)).toString('base64')), 'base64');
  return (purpose) => new Uint8Array(hkdfSync('sha256', root, '', `reseal ${purpose}`, BYTES));
}
