// Callback commands of the CLI. In a sandbox's folder they use the name server, receiver and roots of the running sandbox.

import type { CallbackCommands } from '../cli/command.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { Refusal } from '../domain/errors.ts';
import { byOperator } from '../usecases/access/audit.ts';
import type { App } from './app.ts';
import { openCallbacks } from './callbacks.ts';
import { callbackNetwork, sandboxOf } from './sandbox-network.ts';

export async function callbackCommands(app: App, config: Config, now: Clock): Promise<CallbackCommands> {
  const sandbox = await sandboxOf(app.store, config);
  const network = sandbox && callbackNetwork(sandbox, config);
  const { callbacks, deliveries, sendTestCallback } = openCallbacks(app, config, now, network);
  return {
    callbacks,
    deliveries,
    async account(id) {
      const account = await app.store.accounts.find(id);
      if (!account) throw new Refusal('account_not_found');
      return account;
    },
    sendTest: (account, body) => {
      const { signal } = new AbortController();
      return sendTestCallback({ account, by: byOperator(account.id), body, isOperator: true, signal });
    },
  };
}
