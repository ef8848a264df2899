// Checks the runtime: the pinned one must be the recorded binary. Any other is vouched for by its installer.
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Diagnostic } from '../../kernel/problem.ts';

/** bin/runtimes.json, by platform and architecture. */
type Recorded = Readonly<Record<string, { readonly package: string; readonly sha256: string }>>;

const recorded = (): Recorded =>
  JSON.parse(readFileSync(new URL('../../../bin/runtimes.json', import.meta.url), 'utf8'));

/** Once per process: the file is large. */
let digest: Promise<string> | undefined;

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

export async function checkRuntime(): Promise<Diagnostic> {
  const [check, name] = ['runtime', `Node ${process.versions.node}`];
  const pinned = recorded()[`${process.platform}-${process.arch}`];
  const isPinned = pinned && process.execPath.split(/[/\\]/).includes(pinned.package);
  if (!isPinned) return { check, state: 'ok', text: `${name} of this machine` };
  digest ??= digestOf(process.execPath);
  if ((await digest) === pinned.sha256)
    return { check, state: 'ok', text: `${name}, bundled, with the recorded digest` };
  return {
    check,
    state: 'problem',
    text: `${process.execPath} is not the runtime that was recorded`,
    remedy: 'Delete node_modules and install again, or use the official Node 24.',
  };
}
