// The only function that opens outbound connections: resolve, vet, connect, exchange. The name is resolved once, and the
// socket connects to a vetted address: resolving again at connect time would allow DNS rebinding. Do not add a second
// path.
import { isLocalName, isPrivateUrl, judgeAddress } from '../../domain/egress/address-verdict.ts';
import type { CallOut, OutboundCall, Outcome } from '../../domain/egress/outbound.ts';
import { CallScope } from './call-scope.ts';
import { connect, trustStore, type VettedAddress } from './connect.ts';
import { exchange } from './exchange.ts';
import { Failure } from './failure.ts';
import { nameResolver, type Resolved } from './resolve.ts';

export interface EgressLimits {
  readonly resolveMs: number;
  /** For all addresses tried, including TLS. */
  readonly connectMs: number;
  /** For the response body, after its head. */
  readonly bodyMs: number;
}

export const DEFAULT_LIMITS: EgressLimits = { resolveMs: 3_000, connectMs: 5_000, bodyMs: 1_000 };

export interface EgressOptions {
  /** Empty: the system's. */
  readonly dnsServers: readonly string[];
  /** PEM; trusted in addition to Node's bundled roots. */
  readonly extraRoots: readonly string[];
  readonly userAgent: string;
  readonly limits?: EgressLimits;
}

export function callOut({ dnsServers, extraRoots, userAgent, limits = DEFAULT_LIMITS }: EgressOptions): CallOut {
  const trust = trustStore(extraRoots);
  const { resolveMs, connectMs, bodyMs } = limits;
  const resolveName = nameResolver(dnsServers, resolveMs);
  return async (call): Promise<Outcome> => {
    using scope = new CallScope(call.policy.totalMs, call.signal);
    try {
      const addresses = await vetAddresses(call, () => resolveName(call.url.host, scope));
      if (!addresses) return { kind: 'private' };
      const { socket, isPrivate } = await connect({ url: call.url, addresses, trust, limitMs: connectMs, scope });
      const response = await exchange({ call, socket, userAgent, bodyMs, scope });
      return { kind: 'answered', ...response, isPrivate, seen: scope.seen() };
    } catch (error) {
      if (error instanceof Failure) return { kind: 'failed', reason: error.reason, seen: scope.seen() };
      throw error;
    }
  };
}

/** Null for a private target: a single address that may not be called refuses the whole name. */
async function vetAddresses(
  { url, policy }: OutboundCall,
  resolve: () => Promise<Resolved>,
): Promise<readonly VettedAddress[] | null> {
  if (isPrivateUrl(url, policy)) return null;
  const { addresses, failure } = url.literal ? { addresses: [url.literal], failure: null } : await resolve();
  const verdicts = addresses.map((address) => judgeAddress(address, url.port, policy));
  if (verdicts.includes('refused')) return null;
  // A local name is private by definition: callable only if allow rules match every address it resolves to.
  const isLocal = url.literal === null && isLocalName(url.host);
  if (isLocal && (failure || verdicts.length === 0 || verdicts.includes('public'))) return null;
  // One address family is missing, and a private address might be in it.
  if (failure) throw new Failure(failure);
  if (addresses.length === 0) throw new Failure('name_not_found');
  return addresses.map((address, index) => ({ address, isPrivate: verdicts[index] === 'allowed' }));
}
