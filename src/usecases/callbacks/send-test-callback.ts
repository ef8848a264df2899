// Test an account's callback: a real POST, now, to the saved address or to a temporary one, and nothing is saved. In
// this order, which is contract (callback-test 10): the wish, merging with the saved settings, what the address alone
// tells, a slot, the rate, and only then the network. Who may test at all was asked at the door.
import type { Account } from '../../domain/access/account.ts';
import type { Actor } from '../../domain/access/credential.ts';
import { type CallbackSettings, placeholder, testBody } from '../../domain/callbacks/callback.ts';
import { type CallbackTestRequest, callbackTestRequest } from '../../domain/callbacks/callback-test-request.ts';
import { type CallbackReport, reportOf } from '../../domain/callbacks/report.ts';
import type { Clock } from '../../domain/clock.ts';
import { isPrivateUrl } from '../../domain/egress/address-verdict.ts';
import type { CallOut, OutboundPolicy, OutboundUrl } from '../../domain/egress/outbound.ts';
import { callbackUrl } from '../../domain/egress/url.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Rate } from '../../domain/rate.ts';
import type { Secret } from '../../domain/secret.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import type { Slot } from './callback-test-slots.ts';
import { callbackHeaders, newSigningSecret } from './sign-callback.ts';

export interface CallbackTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly callOut: CallOut;
  /** Where callbacks of this account may go. */
  readonly policyFor: (accountId: AccountId) => OutboundPolicy;
  readonly testRate: Rate;
  readonly takeSlot: (accountId: AccountId, host: string) => Slot;
}

export interface CallbackTestCall {
  readonly account: Account;
  readonly by: Actor;
  /** As it was parsed; undefined when there was none. */
  readonly body: unknown;
  /** Who is not bound by the rule for managed-PKI accounts. */
  readonly isOperator?: boolean;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
}

export type TestCallback = (call: CallbackTestCall) => Promise<CallbackReport>;

export function testCallback(tools: CallbackTools): TestCallback {
  const { store, now, newId, callOut, policyFor, takeSlot } = tools;
  return async (call) => {
    const { account } = call;
    const wish = callbackTestRequest(call.body, call.isOperator ? 'standard' : account.kind);
    const { url, accessKey, signingSecret, former, isSaved } = await targetOf(tools, account.id, wish);
    const policy = policyFor(account.id);
    // What needs no query is told before a token is spent.
    if (isPrivateUrl(url, policy)) throw new Refusal('callback_private_domain');
    using _slot = takeSlot(account.id, url.host);
    await store.transaction((tx) => begin(tools, tx, call, wish, url));

    const [id, orderId, certificateId] = [placeholder(newId()), placeholder(newId()), placeholder(newId())];
    const body = JSON.stringify(testBody({ orderId, certificateId }, account.locale));
    const headers = callbackHeaders({ id, at: now(), body, accessKey, signingSecret, former });
    const outcome = await callOut({ url, method: 'POST', headers, body, policy, signal: call.signal });
    const report = reportOf(outcome, id, accessKey, now());
    // The receiver is well: events that were kept from it need not wait any longer.
    if (isSaved) await store.callbackLanes.reset(account.id, now());
    return report;
  };
}

interface Target {
  readonly url: OutboundUrl;
  readonly accessKey: Secret;
  readonly signingSecret: Secret;
  readonly former: CallbackSettings['former'];
  /** It is where real callbacks go, with the key that they carry. */
  readonly isSaved: boolean;
}

/** A temporary url is sent the saved key if no other is given: that is what merging means. */
async function targetOf(
  { store, randomBytes }: CallbackTools,
  accountId: AccountId,
  wish: CallbackTestRequest,
): Promise<Target> {
  const saved = await store.callbacks.find(accountId);
  const url = wish.url?.parsed ?? (saved && callbackUrl(saved.url));
  const accessKey = wish.accessKey ?? saved?.accessKey;
  if (!url || !accessKey) throw new Refusal('callback_not_configured');
  // An account that has saved nothing has no secret yet: its test is signed with one that nobody keeps.
  const signingSecret = saved?.signingSecret ?? newSigningSecret(randomBytes);
  const isSaved = !(wish.url && wish.url.text !== saved?.url) && accessKey.reveal() === saved?.accessKey.reveal();
  return { url, accessKey, signingSecret, former: saved?.former ?? null, isSaved };
}

/** The token and the audit row go together: whatever leaves the machine was allowed, and is on record. */
async function begin(
  { now, newId, testRate }: CallbackTools,
  tx: Repositories,
  { by }: CallbackTestCall,
  wish: CallbackTestRequest,
  { host, port }: OutboundUrl,
): Promise<void> {
  const { accountId } = by;
  const at = now();
  const waitMs = await tx.rateLimits.take(`callback-test ${accountId}`, testRate, at);
  if (waitMs > 0) throw new Refusal('request_too_fast', { retryAfterSeconds: Math.ceil(waitMs / 1000) });
  await tx.audit.append({
    id: newId(),
    at,
    ...by,
    action: 'callback:tested',
    subject: accountId,
    details: {
      host,
      port,
      url: wish.url ? 'temporary' : 'saved',
      access_key: wish.accessKey ? 'temporary' : 'saved',
    },
  });
}
