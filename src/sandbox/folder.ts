// The sandbox's data folder: sandbox.json for scripts, and reset. A reset only clears folders made by a sandbox, and
// deletes only files that the sandbox made.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Issuer } from '../domain/certificate/authority.ts';
import { pem } from '../domain/certificate/pem.ts';
import type { AccountId, CertificateId } from '../domain/ids.ts';
import { draftOf, replaceFile } from '../kernel/durable-file.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { ReceivedCallback } from './receiver.ts';
import { WORLD_FILE } from './world.ts';

/** Scripts rely on this schema: fields are added, never renamed. */
export interface SandboxFile {
  readonly base_url: string;
  readonly accounts: readonly {
    readonly id: string;
    readonly name: string;
    readonly kind: string;
    readonly credentials: readonly { readonly kind: string; readonly key_id: string; readonly auth_key: string }[];
    readonly callback: SandboxCallback | null;
  }[];
  readonly orders: readonly {
    readonly id: string;
    readonly account_id: AccountId;
    readonly product: string;
    readonly common_name: string | null;
    readonly dns_names: readonly string[];
    readonly status: string;
    readonly certificate_id: CertificateId | null;
  }[];
  /** The sandbox's receiver, and the last callbacks it received, newest first. */
  readonly receiver: {
    readonly url: string;
    readonly address: string;
    /** RESEAL_SANDBOX_ALLOW and RESEAL_CALLBACK_ROOTS_FILE when the sandbox started. */
    readonly allow: readonly string[];
    readonly roots_file: string | null;
    readonly callbacks: readonly ReceivedCallback[];
  };
  /** Paths of PEM files. */
  readonly trust: { readonly roots: readonly string[] };
  /** The sandbox's name server. */
  readonly dns: { readonly address: string };
  /** The sandbox's web server, which serves the files set with `reseal sandbox http set`. */
  readonly web: { readonly address: string };
  /** For clients of ACME: where they publish what answers challenges, and the TLS server of tls-alpn-01. */
  readonly challenges?: { readonly url: string; readonly tls_address: string };
  /** The directory for clients of ACME, and an external account binding of the first account. */
  readonly acme?: { readonly directory: string; readonly kid: string; readonly hmac_key: string };
}

export interface SandboxCallback {
  readonly url: string;
  readonly access_key: string;
  readonly signing_secret: string;
  readonly disabled: boolean;
  readonly enabled_actions?: readonly string[];
}

const FILE = 'sandbox.json';
const ROOT_FILES = { p256: 'root-p256.pem', p384: 'root-p384.pem', rsa: 'root-rsa.pem', sm2: 'root-sm2.pem' } as const;
/** Commands also write these before the first start of a sandbox. */
const WORLD_FILES = [draftOf(WORLD_FILE), WORLD_FILE];
const SANDBOX_FILES = [
  ...WORLD_FILES,
  'reseal.db',
  'reseal.db-wal',
  'reseal.db-shm',
  'reseal.db-turn',
  'crl-numbers.db-journal',
  'crl-numbers.db',
  'seal.key',
  ...Object.values(ROOT_FILES).flatMap((name) => [draftOf(name), name]),
  draftOf(FILE),
  FILE,
];

export const sandboxFileIn = (folder: string): string => join(folder, FILE);

/** Readable by its owner only: the file holds keys in clear. */
export function writeSandboxFile(folder: string, content: SandboxFile): void {
  replaceFile(sandboxFileIn(folder), `${JSON.stringify(content, null, 2)}\n`);
}

/**
 * Returns undefined if no sandbox was ever started in the folder, or if the file is damaged: it is only a copy of what the
 * store holds, except for the callbacks received, and every start writes it anew.
 */
export function readSandboxFile(folder: string): SandboxFile | undefined {
  const file = sandboxFileIn(folder);
  if (!existsSync(file)) return undefined;
  try {
    const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isSandboxFile(read) ? read : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const isSandboxFile = (read: unknown): read is SandboxFile =>
  Array.isArray((read as Partial<SandboxFile> | null)?.receiver?.callbacks);

/** Writes the roots as PEM files, one for each key type, and returns their paths. */
export function writeRoots(folder: string, issuers: readonly Issuer[]): string[] {
  const roots = Map.groupBy(
    issuers.filter(({ role }) => role === 'root'),
    ({ keyType }) => keyType,
  );
  return [...roots].map(([keyType, ofType]) => {
    const path = join(folder, ROOT_FILES[keyType]);
    replaceFile(path, ofType.map(({ certificate }) => pem('CERTIFICATE', certificate)).join(''));
    return path;
  });
}

/** Deletes the sandbox's files. Returns the names of those that existed. */
export function clearSandbox(folder: string): string[] {
  const present = SANDBOX_FILES.filter((name) => existsSync(join(folder, name)));
  const others = present.filter((name) => !WORLD_FILES.includes(name));
  if (others.length > 0 && !present.includes(FILE)) {
    throw new Problem(
      EXIT.refused,
      `${folder} was not made by a sandbox: it has ${others.join(', ')} but no ${FILE}`,
      'Point RESEAL_DATA_DIR at the sandbox, or delete the folder yourself if nothing in it is needed.',
    );
  }
  // sandbox.json, the marker, is deleted last, so that an interrupted reset can be repeated.
  for (const name of present) rmSync(join(folder, name));
  return present;
}
