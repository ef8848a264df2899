// Show, save, rotate and delete an account's callback settings. Values are parsed by the rules of the callback test. New
// settings get a signing secret, which is returned this once.

import type { Actor } from '../../domain/access/credential.ts';
import type { CallbackSettings } from '../../domain/callbacks/callback.ts';
import { type CallbackSettingsRequest, parseSettingsRequest } from '../../domain/callbacks/callback-requests.ts';
import type { HeldBackEvents } from '../../domain/callbacks/ports.ts';
import { isPrivateUrl } from '../../domain/egress/address-verdict.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Secret } from '../../domain/secret.ts';
import type { Repositories } from '../../domain/store.ts';
import { auditLog } from '../access/audit.ts';
import type { CallbackTools } from './send-test-callback.ts';
import { newSigningSecret } from './sign-callback.ts';

/** As many as one request can resend. */
const MAX_COUNTED = 1_000;

export interface SavedCallback {
  readonly settings: CallbackSettings;
  /** Null unless this call created it. */
  readonly signingSecret: Secret | null;
}

export interface ConfigureCallback {
  show(accountId: AccountId): Promise<CallbackSettings | undefined>;
  /** What a pause has held back. */
  heldBack(accountId: AccountId): Promise<HeldBackEvents>;
  save(by: Actor, body: unknown): Promise<SavedCallback>;
  /** Creates a new signing secret; the former one also signs for a while. Refuses with `callback_not_configured`. */
  rotateSecret(by: Actor): Promise<SavedCallback>;
  /** False if there were no settings. */
  remove(by: Actor): Promise<boolean>;
}

type Tools = Pick<CallbackTools, 'store' | 'now' | 'newId' | 'randomBytes' | 'policyFor'> & {
  /** How long former secrets keep signing. */
  readonly overlapMs: number;
};

export function configureCallback(tools: Tools): ConfigureCallback {
  const { store, now, newId, randomBytes, policyFor, overlapMs } = tools;
  const audit = auditLog({ now, newId });

  async function saveIn(tx: Repositories, by: Actor, request: CallbackSettingsRequest): Promise<SavedCallback> {
    const { accountId } = by;
    const saved = await tx.callbacks.findForUpdate(accountId);
    const url = request.url?.text ?? saved?.url;
    const accessKey = request.accessKey ?? saved?.accessKey;
    if (url === undefined || !accessKey) throw new Refusal('callback_not_configured');
    const made = newSigningSecret(randomBytes);
    const { isDisabled, enabledActions } = request;
    const settings = await tx.callbacks.save({
      ...{ accountId, url, accessKey, signingSecret: made, former: saved?.former ?? null },
      ...{ isDisabled, enabledActions, updatedAt: now() },
    });
    // A new address or key may be the remedy: resets the circuit breaker, so that pending events try it at once.
    const isNewTarget = url !== saved?.url || accessKey.reveal() !== saved.accessKey.reveal();
    if (isNewTarget) await tx.callbackLanes.reset([accountId], now());
    const { hostname: host, port } = new URL(url);
    await audit(tx, by, 'callback:saved', accountId, {
      ...{ host, port: Number(port || 443), disabled: String(isDisabled) },
      enabled_actions: enabledActions?.join(' ') ?? 'all',
      access_key: request.accessKey ? 'new' : 'kept',
    });
    // Of two concurrent first saves one loses its secret: only the stored one is returned.
    return { settings, signingSecret: settings.signingSecret.reveal() === made.reveal() ? made : null };
  }

  return {
    show: (accountId) => store.callbacks.find(accountId),
    heldBack: (accountId) => store.deliveries.heldBack(accountId, MAX_COUNTED),
    async save(by, body) {
      const request = parseSettingsRequest(body);
      if (request.url && isPrivateUrl(request.url.parsed, policyFor(by.accountId))) {
        throw new Refusal('callback_private_domain');
      }
      return await store.transaction((tx) => saveIn(tx, by, request));
    },
    rotateSecret: (by) =>
      store.transaction(async (tx) => {
        const made = newSigningSecret(randomBytes);
        const at = now();
        const formerUntil = at + overlapMs;
        const settings = await tx.callbacks.rotateSecret(by.accountId, made, { now: at, formerUntil });
        if (!settings) throw new Refusal('callback_not_configured');
        await audit(tx, by, 'callback:rotated', by.accountId, { former_until: formerUntil });
        return { settings, signingSecret: made };
      }),
    remove: (by) =>
      store.transaction(async (tx) => {
        const isDeleted = await tx.callbacks.delete(by.accountId);
        if (isDeleted) await audit(tx, by, 'callback:deleted', by.accountId);
        return isDeleted;
      }),
  };
}
