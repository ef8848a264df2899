// The outside world of a sandbox, as commands in its folder see it: the same name server, receiver and web answerer that
// the running sandbox wrote down.
import { readFileSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { parseAddressRule } from '../domain/egress/addresses.ts';
import type { Store } from '../domain/store.ts';
import { readSandboxFile, type SandboxFile } from '../sandbox/folder.ts';
import type { CallbackNetwork } from './callbacks.ts';
import type { NamesOutside } from './validation.ts';

/** Undefined where the store is no sandbox's, or none has run here yet. */
export async function sandboxOf(
  { settings }: Pick<Store, 'settings'>,
  config: Config,
): Promise<SandboxFile | undefined> {
  const file = (await settings.get('mode')) === 'sandbox' ? readSandboxFile(config.dataDir) : undefined;
  // An earlier version did not write down where its files are served, because it served none.
  return file?.web ? file : undefined;
}

export const dnsServers = ({ dns }: Pick<SandboxFile, 'dns'>, config: Config): readonly string[] =>
  config.dnsServers.length > 0 ? config.dnsServers : [dns.address];

export const callbacksOutside = (sandbox: SandboxFile, config: Config): CallbackNetwork => ({
  allow: [sandbox.receiver.address, ...sandbox.receiver.allow].map((text) => parseAddressRule(text)!),
  roots: [...sandbox.trust.roots, ...(sandbox.receiver.roots_file ? [sandbox.receiver.roots_file] : [])].map((path) =>
    readFileSync(path, 'utf8'),
  ),
  dnsServers: dnsServers(sandbox, config),
});

export function namesOutside(sandbox: Pick<SandboxFile, 'dns' | 'web'>, config: Config): NamesOutside {
  const rule = parseAddressRule(sandbox.web.address)!;
  return {
    dnsServers: dnsServers(sandbox, config),
    allow: [rule],
    httpPort: Number(sandbox.web.address.split(':').at(-1)),
  };
}
