// The only file that opens outbound connections: resolve, vet, connect, then exchange HTTP or look at a certificate. The
// name is resolved once, and the socket connects to a vetted address: resolving again at connect time would allow DNS
// rebinding. Do not add a second path.
import { isLocalName, isPrivateUrl, judgeAddress } from '../../domain/egress/address-verdict.ts';
import { type Address, addressText } from '../../domain/egress/addresses.ts';
import type { CallOut, OutboundCall, Outcome, ProbeTls, Unreached } from '../../domain/egress/outbound.ts';
import type { AddressSlots } from './address-slots.ts';
import { CallScope } from './call-scope.ts';
import { connect, showCertificate, trustStore } from './connect.ts';
import type { Connection, VettedAddress } from './connection.ts';
import { exchange } from './exchange.ts';
import { Failure, Unanswered } from './failure.ts';
import type { KeptConnections } from './kept-connections.ts';
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
  /** For calls with `keptFor`. Without it no connection is kept. */
  readonly kept?: KeptConnections | undefined;
  /** Bounds connections to one address, whatever names lead to it. Without it they are not bounded here. */
  readonly addressSlots?: AddressSlots | undefined;
}

export function callOut(options: EgressOptions): CallOut {
  const { userAgent, limits = DEFAULT_LIMITS, kept } = options;
  const { vet, connecting } = guard(options);
  const { bodyMs } = limits;
  return async (call): Promise<Outcome> => {
    const { url, policy, keptFor } = call;
    const idle = keptFor === undefined ? undefined : kept?.of(keptFor, url);
    using scope = new CallScope(policy.totalMs, call.signal);

    async function sendOver(connection: Connection, addresses: readonly VettedAddress[]): Promise<Outcome> {
      scope.tls = connection.tls;
      const { isReusable, ...response } = await exchange({ call, connection, userAgent, bodyMs, scope });
      if (isReusable && idle) {
        scope.disown();
        idle.keep(connection);
      }
      const isPrivate = connection.findIn(addresses)?.isPrivate ?? true;
      return { kind: 'answered', ...response, isPrivate, seen: scope.seen() };
    }

    try {
      const addresses = await vet(call, scope);
      // Also closes the kept connections that lead elsewhere, before anything is sent.
      const reused = idle?.take(addresses ?? []);
      if (!addresses) return { kind: 'private' };
      if (reused) {
        try {
          return await sendOver(scope.own(reused), addresses);
        } catch (error) {
          // The receiver closed it while it was idle, or has restarted; then its other connections are gone as well. A
          // request that it did read arrives twice, which at-least-once delivery allows.
          reused.destroy();
          idle?.closeAll();
          if (!(error instanceof Unanswered)) throw error;
        }
      }
      return await sendOver(await connect(connecting(call, addresses, scope)), addresses);
    } catch (error) {
      return unreached(error, scope);
    }
  };
}

/** Extra roots do not count: certificates are looked at, not verified. */
export function probeTls(options: EgressOptions): ProbeTls {
  const { vet, connecting } = guard(options);
  return async (probe) => {
    using scope = new CallScope(probe.policy.totalMs, probe.signal);
    try {
      const addresses = await vet(probe, scope);
      if (!addresses) return { kind: 'private' };
      const { address, protocol, certificate } = await showCertificate(connecting(probe, addresses, scope), probe);
      const isPrivate = addresses.find((one) => Buffer.compare(one.address, address) === 0)?.isPrivate ?? true;
      return { kind: 'shown', hasAgreed: protocol === probe.protocol, certificate, isPrivate };
    } catch (error) {
      return unreached(error, scope);
    }
  };
}

/** What both kinds of call share: how a name is resolved and vetted, and what a connection is bound to. */
function guard({ dnsServers, extraRoots, limits = DEFAULT_LIMITS, addressSlots }: EgressOptions) {
  const trust = trustStore(extraRoots);
  const resolveName = nameResolver(dnsServers, limits.resolveMs);
  return {
    vet: (call: Target, scope: CallScope) => vetAddresses(call, () => resolveName(call.url.host, scope)),
    connecting: ({ url, policy, owner = '' }: Target, addresses: readonly VettedAddress[], scope: CallScope) => ({
      ...{ url, addresses, trust, scope, limitMs: limits.connectMs },
      trustsAny: policy.dangerouslyTrustsAnyCertificate ?? false,
      admit: addressSlots && ((address: Address) => addressSlots(addressText(address), owner)),
    }),
  };
}

type Target = Pick<OutboundCall, 'url' | 'policy' | 'owner'>;

function unreached(error: unknown, scope: CallScope): Unreached {
  if (error instanceof Failure) return { kind: 'failed', reason: error.reason, seen: scope.seen() };
  throw error;
}

/** Null for a private target: a single address that may not be called refuses the whole name. */
async function vetAddresses(
  { url, policy }: Target,
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
