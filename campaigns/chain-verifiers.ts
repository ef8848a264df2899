// Independent programs that verify a chain for a purpose: openssl, GnuTLS and Go, where they are installed.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files, PEM. */
export interface ChainFiles {
  readonly leaf: string;
  readonly issuing: string;
  readonly root: string;
}

export type ChainPurpose = 'ssl' | 'client' | 'code' | 'document';

const USAGES: Readonly<Record<ChainPurpose, string>> = {
  ssl: '1.3.6.1.5.5.7.3.1',
  client: '1.3.6.1.5.5.7.3.2',
  code: '1.3.6.1.5.5.7.3.3',
  document: '1.3.6.1.5.5.7.3.36',
};
/** Of the other purposes openssl 3.0 knows none. */
const OPENSSL_PURPOSES: Readonly<Partial<Record<ChainPurpose, string>>> = { ssl: 'sslserver', client: 'sslclient' };

export interface ChainVerifier {
  readonly name: string;
  /** Whether it tells this purpose from others. */
  readonly knows: (purpose: ChainPurpose) => boolean;
  /** `host`: a name or address that the leaf must have. Returns what it says against the chain; empty if nothing. */
  readonly faults: (chain: ChainFiles, purpose: ChainPurpose, host?: string) => string;
}

const isHere = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;

function run(program: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? '' : `${stdout} ${stderr}`.trim().slice(-300) || `exit ${status}`;
}

/** Those that are installed; Go's is built in the folder. */
export function chainVerifiers(folder: string): ChainVerifier[] {
  const found: ChainVerifier[] = [];
  if (isHere('openssl', 'version')) found.push(openssl);
  if (isHere('certtool', '--version')) found.push(gnutls(folder));
  const program = join(folder, 'verify');
  const source = join(import.meta.dirname, 'clients', 'verify.go');
  if (isHere('go', 'version') && isHere('go', 'build', '-o', program, source)) found.push(go(program));
  return found;
}

const openssl: ChainVerifier = {
  name: 'openssl',
  knows: (purpose) => OPENSSL_PURPOSES[purpose] !== undefined,
  faults({ leaf, issuing, root }, purpose, host) {
    const named = host === undefined ? [] : [/^[\d.]+$|:/.test(host) ? '-verify_ip' : '-verify_hostname', host];
    const strict = ['verify', '-x509_strict', '-purpose', OPENSSL_PURPOSES[purpose] ?? 'any', ...named];
    return run('openssl', [...strict, '-CAfile', root, '-untrusted', issuing, leaf]);
  },
};

const gnutls = (folder: string): ChainVerifier => ({
  name: 'GnuTLS',
  knows: () => true,
  faults({ leaf, issuing, root }, purpose, host) {
    const file = join(folder, 'gnutls.pem');
    writeFileSync(file, readFileSync(leaf, 'utf8') + readFileSync(issuing, 'utf8'));
    const named = host === undefined ? [] : ['--verify-hostname', host];
    const usage = ['--verify-purpose', USAGES[purpose]];
    return run('certtool', ['--verify', '--load-ca-certificate', root, ...usage, ...named, '--infile', file]);
  },
});

const go = (program: string): ChainVerifier => ({
  name: 'Go',
  knows: () => true,
  faults: ({ leaf, issuing, root }, purpose, host) =>
    run(program, [leaf, issuing, root, USAGES[purpose], ...(host === undefined ? [] : [host])]),
});
