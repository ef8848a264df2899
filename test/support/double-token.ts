// A token that is a double (double-signer.mjs): keys, a PIN file, and how it behaves.
import { createPublicKey, type KeyObject } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { newFolder } from './app.ts';

export const DOUBLE = fileURLToPath(new URL('./double-signer.mjs', import.meta.url));

export interface DoubleToken {
  readonly folder: string;
  readonly pinFile: string;
  readonly publicKey: KeyObject;
  readonly uri: string;
  set(change: Readonly<Record<string, unknown>>): void;
  /** What it was asked: `open true`, `sign <digest>`. */
  asked(): string[];
}

/** `pem`: its key, PKCS#8. */
export function doubleToken(pem: string): DoubleToken {
  const folder = newFolder();
  const [module, pinFile, log] = [join(folder, 'module.json'), join(folder, 'pin'), join(folder, 'asked')];
  const publicKey = createPublicKey(pem);
  let world: Record<string, unknown> = { pin: '1234', keys: { issuing: pem }, log };
  const set = (change: Readonly<Record<string, unknown>>) => {
    world = { ...world, ...change };
    writeFileSync(module, JSON.stringify(world));
  };
  set({});
  writeFileSync(pinFile, '1234\n', { mode: 0o600 });
  return {
    ...{ folder, pinFile, publicKey, set },
    uri: `pkcs11:token=double;object=issuing?module-path=${module}&pin-source=file:${pinFile}`,
    asked: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
  };
}
