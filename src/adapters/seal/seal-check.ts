// Checks that the seal key belongs to this store. A canary, sealed on first start, is opened on every later one: a wrong
// or missing key is detected before anything is sealed under it.
import { rmSync } from 'node:fs';
import type { SealedSecrets, Store } from '../../domain/store.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { parseSealKeys, SealBroken, type Sealer, type SealKey, sealerWith } from './seal.ts';
import { createSealKeyFile, readSealKeyFile } from './seal-key-file.ts';

export type SealKeySource =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly file: string };

const CANARY = { name: 'seal-check', text: 'this store is sealed with this key' };

/** Throws SealBroken if the store was sealed with another key. Returns false if it is not sealed yet. */
export const checkSeal = async (secrets: SealedSecrets): Promise<boolean> =>
  (await secrets.get(CANARY.name)) !== undefined;

export const sealKeysOf = (source: SealKeySource): SealKey[] | undefined =>
  source.kind === 'text' ? parseSealKeys(source.text) : readSealKeyFile(source.file);

export function openSealer(source: SealKeySource): { sealer: Sealer; confirm(store: Store): Promise<void> } {
  const existing = sealKeysOf(source);
  const keys = existing ?? (source.kind === 'file' ? createSealKeyFile(source.file) : []);
  return {
    sealer: sealerWith(keys),
    async confirm(store) {
      try {
        await store.secrets.claim(CANARY.name, CANARY.text);
      } catch (error) {
        if (!(error instanceof SealBroken)) throw error;
        // Remove a key file created a moment ago: it would hide that the right one is missing.
        if (!existing && source.kind === 'file') rmSync(source.file, { force: true });
        throw new Problem(
          EXIT.configuration,
          `the store was sealed with another key: ${error.message}`,
          source.kind === 'file'
            ? `Restore ${source.file} from your backup, or name the right file in RESEAL_SEAL_KEY_FILE.`
            : 'Set RESEAL_SEAL_KEY to the key this store was created with; after a rotation, to both, the new one first.',
          { cause: error },
        );
      }
    },
  };
}
