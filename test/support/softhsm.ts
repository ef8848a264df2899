// A real PKCS#11 token, where SoftHSM is installed: a folder, a configuration that the signer process inherits, and a PIN.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './app.ts';

const MODULES = [
  ...['/usr/lib/softhsm/libsofthsm2.so', '/usr/lib64/softhsm/libsofthsm.so', '/usr/lib64/pkcs11/libsofthsm2.so'],
  ...['/usr/local/lib/softhsm/libsofthsm2.so', '/opt/homebrew/lib/softhsm/libsofthsm2.so'],
];

/** Undefined where it is not installed. SOFTHSM2_MODULE names another place. */
export const SOFTHSM = [process.env.SOFTHSM2_MODULE ?? '', ...MODULES].find((path) => path !== '' && existsSync(path));

export interface SoftToken {
  readonly tokens: string;
  readonly pinFile: string;
  uriOf(object: string): string;
}

/** Sets SOFTHSM2_CONF of this process: one token at a time. */
export function newSoftToken(module: string): SoftToken {
  const folder = newFolder();
  const tokens = join(folder, 'tokens');
  mkdirSync(tokens);
  const conf = join(folder, 'softhsm2.conf');
  writeFileSync(conf, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`);
  process.env.SOFTHSM2_CONF = conf;
  const pinFile = join(folder, 'pin');
  writeFileSync(pinFile, '1234\n', { mode: 0o600 });
  const init = ['--init-token', '--free', '--label', 'soft', '--pin', '1234', '--so-pin', '5678', '--module', module];
  execFileSync('softhsm2-util', init, { stdio: 'ignore' });
  return {
    ...{ tokens, pinFile },
    uriOf: (object) => `pkcs11:token=soft;object=${object}?module-path=${module}&pin-source=file:${pinFile}`,
  };
}
