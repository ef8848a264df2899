// Callbacks by the operator's own hand. In a sandbox's folder a test sees the same outside world as the running
// sandbox does: its name server, its receiver, its roots.

import type { CallbackCommands } from '../cli/command.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { Refusal } from '../domain/errors.ts';
import type { App } from './app.ts';
import { openCallbacks } from './callbacks.ts';
import { callbacksOutside, sandboxOf } from './sandbox-outside.ts';

export async function callbackCommands(app: App, config: Config, now: Clock): Promise<CallbackCommands> {
  const sandbox = await sandboxOf(app.store, config);
  const { callbacks, deliveries, testCallback } = openCallbacks(
    app,
    config,
    now,
    sandbox && callbacksOutside(sandbox, config),
  );
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
