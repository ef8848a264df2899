// The callback settings of the demo accounts: saved ones for the first account, whose orders call back, and for the
// managed-PKI account; paused and filtered ones for the third standard account. What a person changed or deleted stays so; only the port of our own receiver follows it.

import type { Actor } from '../domain/access/credential.ts';
import type { CallbackAction, CallbackSettings } from '../domain/callbacks/callback.ts';
import { MAX_CALLBACK_URL } from '../domain/egress/url.ts';
import type { Store } from '../domain/store.ts';
import type { ConfigureCallback } from '../usecases/callbacks/configure-callback.ts';
import type { SandboxAccounts } from './seed.ts';

const SEEDS: Readonly<Record<string, { readonly disabled: boolean; readonly enabled_actions?: CallbackAction[] }>> = {
  Sandbox: { disabled: false },
  'Sandbox managed PKI': { disabled: false },
  'Sandbox with paused callback': { disabled: true, enabled_actions: ['order:revoked'] },
};

/** That they were saved once. */
const NOTE = 'sandbox-callbacks';

/** The accounts with what is saved for each. */
export async function seedCallbacks(
  store: Store,
  callbacks: ConfigureCallback,
  accounts: SandboxAccounts,
  receiverUrl: string,
  newAccessKey: () => string,
): Promise<SandboxAccounts> {
  const isFirst = (await store.secrets.get(NOTE)) === undefined;
  const seeded: SandboxAccounts[number][] = [];
  for (const account of accounts) {
    const seed = isFirst ? SEEDS[account.name] : undefined;
    const by = { accountId: account.id, actor: 'cli', requestId: null };
    const before = await callbacks.show(account.id);
    if (before) await followPort(callbacks, by, before, receiverUrl);
    else if (seed) await callbacks.save(by, { ...seed, url: receiverUrl, access_key: newAccessKey() });
    const saved = await callbacks.show(account.id);
    const callback = saved && {
      url: saved.url,
      access_key: saved.accessKey.reveal(),
      signing_secret: saved.signingSecret.reveal(),
      disabled: saved.isDisabled,
      ...(saved.enabledActions && { enabled_actions: saved.enabledActions }),
    };
    seeded.push({ ...account, callback: callback ?? null });
  }
  await store.secrets.claim(NOTE, 'seeded');
  return seeded;
}

async function followPort(
  callbacks: ConfigureCallback,
  by: Actor,
  saved: CallbackSettings,
  receiverUrl: string,
): Promise<void> {
  const [before, now] = [new URL(saved.url), new URL(receiverUrl)];
  // The rest of it stays as it was written; one that would get too long for a port of more digits stays as it is.
  const url = saved.url.replace(/^(https:\/\/[^/?:]+):\d+/i, `$1:${now.port}`);
  if (before.hostname !== now.hostname || before.port === now.port || url.length > MAX_CALLBACK_URL) return;
  await callbacks.save(by, {
    url,
    access_key: saved.accessKey.reveal(),
    disabled: saved.isDisabled,
    ...(saved.enabledActions && { enabled_actions: saved.enabledActions }),
  });
}
