// Tests an account's callback: a real POST to the saved or a temporary URL; nothing is saved. The order is contract
// (callback-test 10): request, merge with saved settings, private URL, concurrency limit, rate limit, network. The
// credential's permission was checked before.
import type { Account } from '../../domain/access/account.ts';
import type { Actor } from '../../domain/access/credential.ts';
import { type CallbackSettings, placeholderId, testBody } from '../../domain/callbacks/callback.ts';
import { type CallbackTestRequest, parseTestRequest } from '../../domain/callbacks/callback-requests.ts';
import { type CallbackReport, reportOf } from '../../domain/callbacks/report.ts';
import type { Clock } from '../../domain/clock.ts';
import { isPrivateUrl } from '../../domain/egress/address-verdict.ts';
import type { CallOut, OutboundPolicy, OutboundUrl } from '../../domain/egress/outbound.ts';
import { callbackUrl } from '../../domain/egress/url.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Rate } from '../../domain/rate.ts';
import type { Secret } from '../../domain/secret.ts';
import type { Store } from '../../domain/store.ts';
import { auditLog } from '../access/audit.ts';
import type { AcquireTestSlot } from './concurrency-limits.ts';
import { callbackHeaders, newSigningSecret } from './sign-callback.ts';

export interface CallbackTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly callOut: CallOut;
  /** Which addresses callbacks of this account may reach. */
  readonly policyFor: (accountId: AccountId) => OutboundPolicy;
  readonly testRate: Rate;
  readonly acquireSlot: AcquireTestSlot;
}

export interface CallbackTestCall {
  readonly account: Account;
  readonly by: Actor;
  /** Parsed JSON; undefined without a body. */
  readonly body: unknown;
  /** Exempt from the rule for managed-PKI accounts. */
  readonly isOperator?: boolean;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

export type SendTestCallback = (call: CallbackTestCall) => Promise<CallbackReport>;

export function sendTestCallback(tools: CallbackTools): SendTestCallback {
  const { store, now, newId, callOut, policyFor, acquireSlot } = tools;
  const authorize = authorizeTest(tools);
  return async ({ account, by, body: json, isOperator, signal }) => {
    const request = parseTestRequest(json, isOperator ? 'standard' : account.kind);
    const { url, accessKey, signingSecret, former, isSaved } = await targetOf(tools, account.id, request);
    const policy = policyFor(account.id);
    // Needs no DNS query, so it costs no token of the rate limit.
    if (isPrivateUrl(url, policy)) throw new Refusal('callback_private_domain');
    using _slot = await acquireSlot(account.id, url.host);
    await authorize(by, request, url);

    const [id, orderId, certificateId] = [placeholderId(newId()), placeholderId(newId()), placeholderId(newId())];
    const body = JSON.stringify(testBody({ orderId, certificateId }, account.locale));
    const headers = callbackHeaders({ id, at: now(), body, accessKey, signingSecret, former });
    const outcome = await callOut({ url, method: 'POST', headers, body, policy, signal });
    const report = reportOf(outcome, id, accessKey, now());
    // The receiver works: closes the circuit breaker, so that pending events are sent at once.
    if (isSaved) await store.callbackLanes.reset([account.id], now());
    return report;
  };
}

interface Target {
  readonly url: OutboundUrl;
  readonly accessKey: Secret;
  readonly signingSecret: Secret;
  readonly former: CallbackSettings['former'];
  /** Same URL and key as real callbacks. */
  readonly isSaved: boolean;
}

/** Merges the request with the saved settings: a temporary URL alone gets the saved key. */
async function targetOf(
  { store, randomBytes }: CallbackTools,
  accountId: AccountId,
  request: CallbackTestRequest,
): Promise<Target> {
  const saved = await store.callbacks.find(accountId);
  const url = request.url?.parsed ?? (saved && callbackUrl(saved.url));
  const accessKey = request.accessKey ?? saved?.accessKey;
  if (!url || !accessKey) throw new Refusal('callback_not_configured');
  // Without saved settings there is no secret yet: signs with a throwaway one.
  const signingSecret = saved?.signingSecret ?? newSigningSecret(randomBytes);
  const isSaved = !(request.url && request.url.text !== saved?.url) && accessKey.reveal() === saved?.accessKey.reveal();
  return { url, accessKey, signingSecret, former: saved?.former ?? null, isSaved };
}

/** Takes a token of the rate limit and writes the audit entry in one transaction, before anything is sent. */
function authorizeTest({ store, now, newId, testRate }: CallbackTools) {
  const audit = auditLog({ now, newId });
  return (by: Actor, request: CallbackTestRequest, { host, port }: OutboundUrl): Promise<void> =>
    store.transaction(async (tx) => {
      const waitMs = await tx.rateLimits.take(`callback-test ${by.accountId}`, testRate, tx.sharedNow());
      if (waitMs > 0) throw new Refusal('request_too_fast', { retryAfterSeconds: Math.ceil(waitMs / 1000) });
      const url = request.url ? 'temporary' : 'saved';
      const accessKey = request.accessKey ? 'temporary' : 'saved';
      await audit(tx, by, 'callback:tested', by.accountId, { host, port, url, access_key: accessKey });
    });
}
