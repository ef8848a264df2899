// The callback settings of the demo accounts: saved ones for the managed-PKI account, paused and filtered ones for
// the third standard account. What a person changed stays; only the port of our own receiver follows it.
import type { CallbackAction } from '../domain/callback.ts';
import type { ConfigureCallback } from '../usecases/configure-callback.ts';
import type { SandboxAccounts } from './seed.ts';

const SEEDS: Readonly<Record<string, { readonly disabled: boolean; readonly enabled_actions?: CallbackAction[] }>> = {
  'Sandbox managed PKI': { disabled: false },
  'Sandbox with paused callback': { disabled: true, enabled_actions: ['order:revoked'] },
};

/** The accounts with what is saved for each. */
export async function seedCallbacks(
  callbacks: ConfigureCallback,
  accounts: SandboxAccounts,
  receiverUrl: string,
  newAccessKey: () => string,
): Promise<SandboxAccounts> {
  const seeded: SandboxAccounts[number][] = [];
  for (const account of accounts) {
    const seed = SEEDS[account.name];
    if (seed) await saveOnce(callbacks, account.id, seed, receiverUrl, newAccessKey);
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
  return seeded;
}

async function saveOnce(
  callbacks: ConfigureCallback,
  accountId: string,
  seed: object,
  receiverUrl: string,
  newAccessKey: () => string,
): Promise<void> {
  const by = { accountId, actor: 'cli', requestId: null };
  const saved = await callbacks.show(accountId);
  if (!saved) {
    await callbacks.save(by, { ...seed, url: receiverUrl, access_key: newAccessKey() });
    return;
  }
  const [before, now] = [new URL(saved.url), new URL(receiverUrl)];
  if (before.hostname !== now.hostname || before.port === now.port) return;
  before.port = now.port;
  await callbacks.save(by, {
    url: before.href,
    access_key: saved.accessKey.reveal(),
    disabled: saved.isDisabled,
    ...(saved.enabledActions && { enabled_actions: saved.enabledActions }),
  });
}
