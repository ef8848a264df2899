// Where the seal keys come from, and what to tell the operator when they are not the store's.
import { rmSync } from 'node:fs';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { parseSealKeys, SealBroken, type Sealer, type SealKey, sealerWith } from './seal.ts';
import { createSealKeyFile, readSealKeyFile } from './seal-key-file.ts';

export type SealKeySource =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly file: string };

export const sealKeysOf = (source: SealKeySource): SealKey[] | undefined =>
  source.kind === 'text' ? parseSealKeys(source.text) : readSealKeyFile(source.file);

export interface OpenSealer {
  readonly sealer: Sealer;
  /** Returns a Problem for SealBroken at start-up; returns any other error unchanged. */
  problemOf(error: unknown): unknown;
}

/** Reads the keys; creates a file with a new one if there is none. */
export function openSealer(source: SealKeySource): OpenSealer {
  const existing = sealKeysOf(source);
  const keys = existing ?? (source.kind === 'file' ? createSealKeyFile(source.file) : []);
  return {
    sealer: sealerWith(keys),
    problemOf(error) {
      if (!(error instanceof SealBroken)) return error;
      // Remove a key file created a moment ago: it would hide that the right one is missing.
      if (!existing && source.kind === 'file') rmSync(source.file, { force: true });
      return new Problem(
        EXIT.configuration,
        `the store was sealed with another key: ${error.message}`,
        source.kind === 'file'
          ? `Restore ${source.file} from your backup, or name the right file in RESEAL_SEAL_KEY_FILE. Until "reseal seal rotate" has finished, it needs both keys, the new one first.`
          : 'Set RESEAL_SEAL_KEY to the key this store was created with; until "reseal seal rotate" has finished, to both, the new one first.',
        { cause: error },
      );
    },
  };
}
