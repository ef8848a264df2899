// Show, save and delete what an account says about its callbacks. The values are read by the rules of the callback
// test; what is new gets a signing secret, which is told this once.

import type { Actor } from '../../domain/access/credential.ts';
import type { AuditAction, AuditEntry } from '../../domain/access/ports.ts';
import type { CallbackSettings } from '../../domain/callbacks/callback.ts';
import { type SettingsRequest, settingsRequest } from '../../domain/callbacks/callback-test-request.ts';
import { isPrivateUrl } from '../../domain/egress/address-verdict.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Secret } from '../../domain/secret.ts';
import type { Repositories } from '../../domain/store.ts';
import type { CallbackTools } from './send-test-callback.ts';
import { newSigningSecret } from './sign-callback.ts';

export interface SavedCallback {
  readonly settings: CallbackSettings;
  /** Only when it was made just now. */
  readonly signingSecret: Secret | null;
}

export interface ConfigureCallback {
  show(accountId: AccountId): Promise<CallbackSettings | undefined>;
  save(by: Actor, body: unknown): Promise<SavedCallback>;
  /** A new signing secret; the one before signs beside it for a while. Refuses with `callback_not_configured`. */
  rotateSecret(by: Actor): Promise<SavedCallback>;
  /** False when nothing was saved. */
  remove(by: Actor): Promise<boolean>;
}

type Tools = Pick<CallbackTools, 'store' | 'now' | 'newId' | 'randomBytes' | 'policyFor'> & {
  /** How long both secrets sign. */
  readonly overlapMs: number;
};

export function configureCallback(tools: Tools): ConfigureCallback {
  const { store, now, newId, randomBytes, policyFor, overlapMs } = tools;
  const auditOf = (by: Actor, action: AuditAction, details: AuditEntry['details']): AuditEntry => ({
    id: newId(),
    at: now(),
    ...by,
    action,
    subject: by.accountId,
    details,
  });

  async function saveIn(tx: Repositories, by: Actor, wish: SettingsRequest): Promise<SavedCallback> {
    const saved = await tx.callbacks.findForUpdate(by.accountId);
    const url = wish.url?.text ?? saved?.url;
    const accessKey = wish.accessKey ?? saved?.accessKey;
    if (url === undefined || !accessKey) throw new Refusal('callback_not_configured');
    const made = newSigningSecret(randomBytes);
    const { isDisabled, enabledActions } = wish;
    const { accountId } = by;
    const former = saved?.former ?? null;
    const wished = {
      ...{ accountId, url, accessKey, signingSecret: made, former },
      ...{ isDisabled, enabledActions, updatedAt: now() },
    };
    const settings = await tx.callbacks.save(wished);
    // Another address or key may be the remedy: what waits for the receiver to be well again tries it at once.
    const isOther = url !== saved?.url || accessKey.reveal() !== saved.accessKey.reveal();
    if (isOther) await tx.callbackLanes.reset(accountId, now());
    await tx.audit.append(
      auditOf(by, 'callback:saved', {
        host: new URL(url).hostname,
        port: Number(new URL(url).port || 443),
        disabled: String(isDisabled),
        enabled_actions: enabledActions?.join(' ') ?? 'all',
        access_key: wish.accessKey ? 'new' : 'kept',
      }),
    );
    // Two who save at once both find nothing: only the one whose secret stands may tell it.
    return { settings, signingSecret: settings.signingSecret.reveal() === made.reveal() ? made : null };
  }

  return {
    show: (accountId) => store.callbacks.find(accountId),
    async save(by, body) {
      const wish = settingsRequest(body);
      if (wish.url && isPrivateUrl(wish.url.parsed, policyFor(by.accountId))) {
        throw new Refusal('callback_private_domain');
      }
      return await store.transaction((tx) => saveIn(tx, by, wish));
    },
    rotateSecret: (by) =>
      store.transaction(async (tx) => {
        const made = newSigningSecret(randomBytes);
        const at = now();
        const settings = await tx.callbacks.rotateSecret(by.accountId, made, { now: at, formerUntil: at + overlapMs });
        if (!settings) throw new Refusal('callback_not_configured');
        await tx.audit.append(auditOf(by, 'callback:rotated', { former_until: at + overlapMs }));
        return { settings, signingSecret: made };
      }),
    remove: (by) =>
      store.transaction(async (tx) => {
        const isDeleted = await tx.callbacks.delete(by.accountId);
        if (isDeleted) await tx.audit.append(auditOf(by, 'callback:deleted', {}));
        return isDeleted;
      }),
  };
}
