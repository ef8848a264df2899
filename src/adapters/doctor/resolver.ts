// Checks each resolver by itself: that it answers, that it validates DNSSEC, and for how long it caches. Certificates for public
// names need all of that: of a resolver that does not validate, a forger needs to deceive the resolver only.
import { Resolver } from 'node:dns/promises';
import type { DnsAnswer, LookupContext } from '../../domain/validation/dns.ts';
import type { Diagnostic } from '../../kernel/problem.ts';
import { dnsLookups } from '../dns/lookups.ts';

/** Exists, and has a long TTL. */
const NAME = 'example.com';
/** What a resolver keeps longer goes on authorizing after its owner has deleted it. */
const MAX_CACHED_SECONDS = 300;
const RESOLVERS = 'docs/operations.md, "Resolvers", and deploy/unbound.conf have the settings.';

interface ResolverSettings {
  /** Empty: the system's. */
  readonly dnsServers: readonly string[];
  readonly perspectives: readonly string[];
  /** A name whose DNSSEC is broken: a resolver that validates must fail for it. */
  readonly testName: string;
}

/** Never throws. One finding per resolver. */
export async function checkResolvers(
  { dnsServers, perspectives, testName }: ResolverSettings,
  signal = new AbortController().signal,
): Promise<Diagnostic[]> {
  const primary = dnsServers.length > 0 ? dnsServers : new Resolver().getServers();
  const servers = [...new Set([...primary, ...perspectives])];
  if (servers.length === 0) return [finding('problem', 'there is none', 'Set RESEAL_DNS_SERVERS.')];
  return await Promise.all(servers.map((server) => checkResolver(server, testName, signal)));
}

async function checkResolver(server: string, testName: string, signal: AbortSignal): Promise<Diagnostic> {
  const { txt } = dnsLookups([server]);
  const context: LookupContext = { accountId: 'doctor', signal };
  const [sound, broken] = await Promise.all([txt(NAME, context), txt(testName, context)]);
  if (sound.kind === 'failed') {
    return finding(
      'warning',
      sound.reason === 'resolver_unreachable'
        ? `${server} cannot be reached`
        : `${server} cannot resolve ${NAME} (${sound.reason})`,
      'Domain validation and callbacks will fail. Set RESEAL_DNS_SERVERS and RESEAL_DNS_PERSPECTIVES to resolvers that this machine can reach.',
    );
  }
  return proofOf(server, testName, broken) ?? cachingOf(server, sound.ttl ?? 0);
}

/** Null if it validates. */
function proofOf(server: string, testName: string, broken: DnsAnswer<string>): Diagnostic | null {
  if (broken.kind === 'failed' && broken.reason === 'dns_servfail') return null;
  if (broken.kind === 'failed') {
    return finding(
      'warning',
      `${server} answers; whether it validates DNSSEC is not known: no answer for ${testName} (${broken.reason})`,
      'Repeat it, or set RESEAL_DNSSEC_TEST_NAME to another name whose DNSSEC is broken.',
    );
  }
  return finding(
    'problem',
    `${server} does not validate DNSSEC: it answers for ${testName}, whose signatures are wrong`,
    `Certificates for public names need a resolver that validates. ${RESOLVERS}`,
  );
}

const cachingOf = (server: string, ttl: number): Diagnostic =>
  ttl > MAX_CACHED_SECONDS
    ? finding(
        'warning',
        `${server} validates DNSSEC and caches for ${ttl} s: a record that its owner deletes authorizes for that long`,
        `Limit its cache. ${RESOLVERS}`,
      )
    : finding('ok', `${server} answers and validates DNSSEC`);

const finding = (state: Diagnostic['state'], text: string, remedy?: string): Diagnostic => ({
  ...{ check: 'resolver', state, text },
  ...(remedy !== undefined && { remedy }),
});
