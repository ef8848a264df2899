// The one function that opens connections to the outside: resolve, vet, connect, exchange. The name is resolved once,
// and the socket is opened to a number that was judged; resolving again at connect time would let the answer change
// between the check and the use. There is no second path, and none may be added.
import { isLocalName, isPrivateAsWritten, judgeAddress } from '../../domain/egress/address-verdict.ts';
import type { CallOut, OutboundCall, Outcome } from '../../domain/egress/outbound.ts';
import { Attempt } from './attempt.ts';
import { connect, trustIn, type Vetted } from './connect.ts';
import { exchange } from './exchange.ts';
import { Failure } from './failure.ts';
import { resolveName } from './resolve.ts';

export interface EgressLimits {
  readonly resolveMs: number;
  /** For all addresses that are tried, TLS included. */
  readonly connectMs: number;
  /** After the head of the answer. */
  readonly bodyMs: number;
}

export const DEFAULT_LIMITS: EgressLimits = { resolveMs: 3_000, connectMs: 5_000, bodyMs: 1_000 };

export interface EgressOptions {
  /** Those of the system, if empty. */
  readonly dnsServers: readonly string[];
  /** PEM; trusted besides the roots that Node brings. */
  readonly extraRoots: readonly string[];
  readonly userAgent: string;
  readonly limits?: EgressLimits;
}

export function callOut({ dnsServers, extraRoots, userAgent, limits = DEFAULT_LIMITS }: EgressOptions): CallOut {
  const trust = trustIn(extraRoots);
  return async (call): Promise<Outcome> => {
    using attempt = new Attempt(call.policy.totalMs, call.signal);
    try {
      const vetted = await vettedAddresses(call, dnsServers, limits.resolveMs, attempt);
      if (!vetted) return { kind: 'private' };
      const { socket, isPrivate } = await connect(call.url, vetted, trust, limits.connectMs, attempt);
      const answer = await exchange(call, socket, userAgent, limits.bodyMs, attempt);
      return { kind: 'answered', ...answer, isPrivate, seen: attempt.seen() };
    } catch (error) {
      if (error instanceof Failure) return { kind: 'failed', reason: error.reason, seen: attempt.seen() };
      throw error;
    }
  };
}

/** Null is a private target: one address that may not be called refuses them all. */
async function vettedAddresses(
  { url, policy }: OutboundCall,
  dnsServers: readonly string[],
  resolveMs: number,
  attempt: Attempt,
): Promise<readonly Vetted[] | null> {
  // Such a name says itself that it is private; only rules that allow every address behind it can make it callable.
  const isLocal = url.literal === null && isLocalName(url.host);
  if (isPrivateAsWritten(url, policy)) return null;
  const { addresses, failure } = url.literal
    ? { addresses: [url.literal], failure: null }
    : await resolveName(url.host, dnsServers, resolveMs, attempt);
  const verdicts = addresses.map((address) => judgeAddress(address, url.port, policy));
  if (verdicts.includes('refused')) return null;
  if (isLocal && (failure || verdicts.length === 0 || verdicts.includes('public'))) return null;
  // The half that is missing might have been the private one.
  if (failure) throw new Failure(failure);
  if (addresses.length === 0) throw new Failure('name_not_found');
  return addresses.map((address, index) => ({ address, isPrivate: verdicts[index] === 'allowed' }));
}
