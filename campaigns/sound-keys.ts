// Sound keys pass: keys as generators make them, in CSRs that they signed, are read and judged as an order would. Weak ones
// are the business of the tests; this campaign looks for keys that are refused though nothing is wrong with them. It prints
// what reading and judging a key costs.
import { generateKeyPair, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { readCsr } from '../src/adapters/ca/csr.ts';
import { newKeyAndCsr } from '../src/adapters/ca/csr-writer.ts';
import { requireCompositeModulus, requireStrongKey } from '../src/adapters/ca/public-key.ts';
import { csr, pem } from '../test/support/csr.ts';
import type { Campaign, Print } from './campaign.ts';

interface Kind {
  /** How many of them are made for N = 10 000. */
  readonly share: number;
  newCsr(): Promise<string>;
}

const generate = promisify(generateKeyPair);

function csrOf({ privateKey, publicKey }: { privateKey: KeyObject; publicKey: KeyObject }): string {
  const spki = new Uint8Array(publicKey.export({ format: 'der', type: 'spki' }));
  return pem(csr({ key: { privateKey, spki } }));
}

const rsa = (modulusLength: number, share: number): Kind => ({
  share,
  newCsr: async () => csrOf(await generate('rsa', { modulusLength })),
});
const curve = (namedCurve: string, share: number): Kind => ({
  share,
  newCsr: async () => csrOf(generateKeyPairSync('ec', { namedCurve })),
});

const KINDS: Readonly<Record<string, Kind>> = {
  'P-256': curve('P-256', 10_000),
  'P-384': curve('P-384', 10_000),
  'P-521': curve('P-521', 1_000),
  Ed25519: { share: 10_000, newCsr: async () => csrOf(generateKeyPairSync('ed25519')) },
  SM2: { share: 10_000, newCsr: async () => (await newKeyAndCsr('www.example.com', 'sm2')).csr },
  'RSA-2048': rsa(2048, 2_000),
  'RSA-3072': rsa(3072, 200),
  'RSA-4096': rsa(4096, 50),
};
const FULL = 10_000;
/** Keys are made in the threads of node:crypto, some at a time. */
const AT_ONCE = 8;

interface Costs {
  read: number;
  strong: number;
  composite: number;
}

/** Returns what was refused. */
export async function judgeSoundKeys(n: number, print: Print): Promise<string[]> {
  const refused: string[] = [];
  for (const [name, { share, newCsr }] of Object.entries(KINDS)) {
    const count = Math.max(1, Math.round((share * n) / FULL));
    const costs: Costs = { read: 0, strong: 0, composite: 0 };
    for (let made = 0; made < count; ) {
      const some = Math.min(AT_ONCE, count - made);
      const texts = await Promise.all(Array.from({ length: some }, () => newCsr()));
      for (const text of texts) {
        const fault = faultOf(text, costs);
        if (fault) refused.push(`${name}: ${fault}\n${text}`);
      }
      made += some;
    }
    const each = (ms: number) => `${Math.round((ms * 1000) / count)} µs`;
    print(
      `${name}: ${count} keys; reading the CSR ${each(costs.read)}, judging the key ${each(costs.strong)}, looking for a prime ${each(costs.composite)}`,
    );
  }
  return refused;
}

function faultOf(text: string, costs: Costs): string | null {
  try {
    const began = performance.now();
    const { publicKey } = readCsr(text);
    const read = performance.now();
    requireStrongKey(publicKey);
    const judged = performance.now();
    requireCompositeModulus(publicKey);
    costs.composite += performance.now() - judged;
    costs.strong += judged - read;
    costs.read += read - began;
    return null;
  } catch (error) {
    return String(error);
  }
}

export const soundKeys: Campaign = {
  about:
    'keys of every kind as generators make them are certified; N of P-256, P-384, Ed25519 and SM2, fewer of the others',
  defaultN: FULL,
  run: judgeSoundKeys,
};
