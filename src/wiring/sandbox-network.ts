// How commands reach the servers of a running sandbox: the addresses of its name server, receiver and web server, from
// its sandbox.json.
import { readFileSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { type AddressRule, parseAddressRule } from '../domain/egress/addresses.ts';
import type { Store } from '../domain/store.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { readSandboxFile, type SandboxFile } from '../sandbox/folder.ts';
import type { CallbackNetwork } from './callbacks.ts';
import type { ValidationNetwork } from './validation.ts';

/** Returns undefined if the store is not a sandbox's, or if none has run in this folder yet. */
export async function sandboxOf(
  { settings }: Pick<Store, 'settings'>,
  config: Config,
): Promise<SandboxFile | undefined> {
  const file = (await settings.get('mode')) === 'sandbox' ? readSandboxFile(config.dataDir) : undefined;
  // Files of earlier versions have no `web`.
  return file?.web ? file : undefined;
}

export const dnsServers = ({ dns }: Pick<SandboxFile, 'dns'>, config: Config): readonly string[] =>
  config.dnsServers.length > 0 ? config.dnsServers : [dns.address];

export const callbackNetwork = (sandbox: SandboxFile, config: Config): CallbackNetwork => ({
  allow: [sandbox.receiver.address, ...sandbox.receiver.allow].map(allowRule),
  roots: [...sandbox.trust.roots, ...(sandbox.receiver.roots_file ? [sandbox.receiver.roots_file] : [])].map((path) =>
    readFileSync(path, 'utf8'),
  ),
  dnsServers: dnsServers(sandbox, config),
});

/** Ports in the configuration are those of a client that listens itself, as certbot and lego can. */
export function validationNetwork(
  { dns, web, challenges }: Pick<SandboxFile, 'dns' | 'web' | 'challenges'>,
  config: Config,
): ValidationNetwork {
  const portOf = (address: string) => Number(address.split(':').at(-1));
  const { httpPort, tlsPort } = config.validation;
  const ports = {
    httpPort: httpPort === 80 ? portOf(web.address) : httpPort,
    tlsPort: tlsPort === 443 && challenges ? portOf(challenges.tls_address) : tlsPort,
  };
  const here = [ports.httpPort, ports.tlsPort].map((port) => allowRule(`127.0.0.1:${port}`));
  return { dnsServers: dnsServers({ dns }, config), allow: here, ...ports };
}

export function allowRule(address: string): AddressRule {
  const rule = parseAddressRule(address);
  if (rule) return rule;
  throw new Problem(
    EXIT.configuration,
    `sandbox.json has no valid address in "${address}"`,
    'Start the sandbox again.',
  );
}
