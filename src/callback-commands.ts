// Callbacks by the operator's own hand. In a sandbox's folder a test sees the same outside world as the running
// sandbox does: its name server, its receiver, its roots.
import { readFileSync } from 'node:fs';
import type { App } from './app.ts';
import { type OutsideWorld, openCallbacks } from './callbacks.ts';
import type { CallbackCommands } from './cli/command.ts';
import type { Config } from './config.ts';
import { parseAddressRule } from './domain/addresses.ts';
import { Refusal } from './domain/errors.ts';
import type { Clock } from './domain/ports.ts';
import { readSandboxFile } from './sandbox/folder.ts';

export async function callbackCommands(app: App, config: Config, now: Clock): Promise<CallbackCommands> {
  const isSandbox = (await app.store.settings.get('mode')) === 'sandbox';
  const outside = isSandbox ? sandboxOutside(config) : undefined;
  const { callbacks, deliveries, testCallback } = openCallbacks(app, config, now, outside);
  return {
    callbacks,
    deliveries,
    async account(id) {
      const account = await app.store.accounts.find(id);
      if (!account) throw new Refusal('account_not_found');
      return account;
    },
    testAs: (account, body) => {
      const by = { accountId: account.id, actor: 'cli', requestId: null };
      return testCallback({ account, by, body, isOperator: true, signal: new AbortController().signal });
    },
  };
}

function sandboxOutside(config: Config): OutsideWorld | undefined {
  const sandbox = readSandboxFile(config.dataDir);
  if (!sandbox) return undefined;
  return {
    allow: [sandbox.receiver.address, ...sandbox.receiver.allow].map((text) => parseAddressRule(text)!),
    roots: [...sandbox.trust.roots, ...(sandbox.receiver.roots_file ? [sandbox.receiver.roots_file] : [])].map((path) =>
      readFileSync(path, 'utf8'),
    ),
    dnsServers: config.dnsServers.length > 0 ? config.dnsServers : [sandbox.dns.address],
  };
}
