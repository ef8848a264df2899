// What the certificates of an issuer's chain say about the certificates below it: purposes, names, policies, and how many
// authorities may follow. Read when an authority is imported and whenever it is opened, so that nothing beside the
// certificates themselves can say otherwise.
import { PURPOSES, type Purpose } from '../../domain/certificate/authority.ts';
import type { NameConstraints, Subtree } from '../../domain/certificate/name-constraints.ts';
import { addressText, network } from '../../domain/egress/addresses.ts';
import { DerReader } from '../der/reader.ts';
import { type ReadExtension, readCertificate } from './certificate-reader.ts';
import { canonicalParts } from './distinguished-name.ts';
import { ANY_POLICY, EKU, OWN_POLICY } from './purposes.ts';

const ID = {
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  certificatePolicies: '2.5.29.32',
  policyMappings: '2.5.29.33',
  policyConstraints: '2.5.29.36',
  extendedKeyUsage: '2.5.29.37',
  inhibitAnyPolicy: '2.5.29.54',
} as const;

/** Those that limit nothing: key usage, key identifiers, alternative names, CRLs and information access. */
const HARMLESS = ['2.5.29.14', '2.5.29.15', '2.5.29.17', '2.5.29.18', '2.5.29.31', '2.5.29.35', '1.3.6.1.5.5.7.1.1'];
const READ: readonly string[] = [...Object.values(ID), ...HARMLESS];

/** A chain that no certificate of ours can obey. The message says why, and ends without a period. */
export class UnusableChain extends Error {}

export interface ChainLimits {
  /** Extended key usages that every authority allows; null for all. */
  readonly usages: ReadonlySet<string> | null;
  readonly names: readonly NameConstraints[];
  /** Policies that are valid at the end of the chain; null for any. */
  readonly policies: ReadonlySet<string> | null;
  /** Verifiers refuse certificates without a valid policy. */
  readonly needsPolicy: boolean;
}

const extensionsIn = (chain: readonly Uint8Array[]) => chain.map((one) => readCertificate(one).extensions);

/** For an import: throws UnusableChain if verifiers refuse the chain itself, or it says what cannot be read here. */
export function requireReadable(chain: readonly Uint8Array[]): void {
  for (const [below, extensions] of extensionsIn(chain).entries()) {
    requireKnown(extensions);
    // The leaf does not count, and neither does the authority itself.
    if (pathLengthIn(extensions.get(ID.basicConstraints)) < below) {
      throw new UnusableChain('an authority in the chain allows fewer authorities below it (pathlen)');
    }
  }
}

/** `chain`: DER, the issuing authority first, the root last. Throws UnusableChain. */
export function limitsOf(chain: readonly Uint8Array[]): ChainLimits {
  const read = extensionsIn(chain);
  const usages: ReadonlySet<string>[] = read.flatMap((one) => usagesIn(one.get(ID.extendedKeyUsage)));
  return {
    usages: usages.length === 0 ? null : usages.reduce(common),
    names: read.flatMap((one) => nameConstraintsIn(one.get(ID.nameConstraints))),
    ...policiesIn(read),
  };
}

const common = (one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...one].filter((value) => other.has(value)));

type Extensions = ReadonlyMap<string, ReadExtension>;

function requireKnown(extensions: Extensions): void {
  for (const [id, { isCritical }] of extensions) {
    if (isCritical && !READ.includes(id)) {
      throw new UnusableChain(`a certificate has a critical extension that is not known here (${id})`);
    }
  }
  if (extensions.has(ID.policyMappings)) throw new UnusableChain('a certificate maps policies to others');
}

function pathLengthIn(extension: ReadExtension | undefined): number {
  if (!extension) return 0;
  const constraints = new DerReader(extension.value).sequence();
  if (constraints.isAtEnd) return 0;
  constraints.any();
  return constraints.isAtEnd ? Number.POSITIVE_INFINITY : smallNumber(constraints.integer());
}

/** Beyond a byte it is no limit here. */
const smallNumber = (bytes: Uint8Array): number => (bytes.length > 1 ? Number.POSITIVE_INFINITY : (bytes[0] ?? 0));

const ANY_USAGE = '2.5.29.37.0';

function usagesIn(extension: ReadExtension | undefined): Set<string>[] {
  if (!extension) return [];
  const found = new Set(oidsIn(new DerReader(extension.value).sequence(), (list) => list.oid()));
  return found.has(ANY_USAGE) ? [] : [found];
}

function oidsIn(list: DerReader, next: (list: DerReader) => string): string[] {
  const found: string[] = [];
  while (!list.isAtEnd) found.push(next(list));
  return found;
}

const DIRECTORY = 4;
const directoryNameIn = (element: Uint8Array): Uint8Array => new DerReader(element).context(DIRECTORY)!.any();
const formOf = (element: Uint8Array): number => (element[0] ?? 0) & 0x1f;

/** GeneralName, by its tag number. */
const FORMS: Readonly<Record<number, (element: Uint8Array) => Subtree>> = {
  1: (element) => ({ form: 'email', base: textOf(element) }),
  2: (element) => ({ form: 'dns', base: textOf(element) }),
  [DIRECTORY]: (element) => ({ form: 'directory', base: canonicalParts(directoryNameIn(element)) }),
  6: (element) => ({ form: 'uri', base: textOf(element) }),
  7: (element) => ({ form: 'ip', base: networkIn(new DerReader(element).primitive().content) }),
};

const textOf = (element: Uint8Array): string =>
  Buffer.from(new DerReader(element).primitive().content).toString('latin1').toLowerCase();

function networkIn(value: Uint8Array) {
  const half = value.length / 2;
  const bits = [...value.subarray(half)].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const prefix = bits.indexOf('0') < 0 ? bits.length : bits.indexOf('0');
  if (![4, 16].includes(half) || bits.includes('1', prefix))
    throw new UnusableChain('an address constraint has no prefix');
  const base = value.subarray(0, half).map((byte, index) => byte & (value[half + index] ?? 0));
  return network(`${addressText(base)}/${prefix}`);
}

function nameConstraintsIn(extension: ReadExtension | undefined): NameConstraints[] {
  if (!extension) return [];
  const reader = new DerReader(extension.value).sequence();
  const subtrees = (list: DerReader | undefined): Subtree[] => {
    const found: Subtree[] = [];
    while (list && !list.isAtEnd) {
      const one = list.sequence();
      const element = one.any();
      const number = formOf(element);
      if (!one.isAtEnd) throw new UnusableChain('a name constraint has a minimum or maximum');
      const read = FORMS[number];
      if (read) found.push(read(element));
      else if (extension.isCritical)
        throw new UnusableChain(`a name constraint is of a form that is not known here ([${number}])`);
    }
    return found;
  };
  const constraints = { permitted: subtrees(reader.context(0)), excluded: subtrees(reader.context(1)) };
  reader.end();
  return [constraints];
}

/** The directory names that the chain permits, DER. */
export function permittedDirectoryNames(chain: readonly Uint8Array[]): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (const extensions of extensionsIn(chain)) {
    const constraints = extensions.get(ID.nameConstraints);
    const permitted = constraints && new DerReader(constraints.value).sequence().context(0);
    while (permitted && !permitted.isAtEnd) {
      const element = permitted.sequence().any();
      if (formOf(element) === DIRECTORY) found.push(directoryNameIn(element));
    }
  }
  return found;
}

/** requireExplicitPolicy, [0] IMPLICIT INTEGER; inhibitPolicyMapping follows, or is alone. */
const REQUIRE_EXPLICIT = 0x80;

/** RFC 5280, 6.1.3 and 6.1.4, without mappings. The root is a trust anchor: its own policies do not count. */
function policiesIn(read: readonly Extensions[]): Pick<ChainLimits, 'policies' | 'needsPolicy'> {
  let policies: ReadonlySet<string> | null = null;
  let needsPolicy = false;
  let anyPolicyFor = Number.POSITIVE_INFINITY;
  for (const [index, extensions] of [...read.entries()].reverse()) {
    const own = extensions.get(ID.certificatePolicies);
    if (index < read.length - 1) {
      const named = new Set(own ? oidsIn(new DerReader(own.value).sequence(), (list) => list.sequence().oid()) : []);
      const isAny = named.delete(ANY_POLICY) && anyPolicyFor > 0;
      if (!isAny) policies = policies === null ? named : common(named, policies);
      anyPolicyFor -= 1;
    }
    const constraints = extensions.get(ID.policyConstraints);
    // How many certificates it spares does not matter: one policy too many is refused by no verifier.
    if (constraints && new DerReader(constraints.value).sequence().primitive().tag === REQUIRE_EXPLICIT)
      needsPolicy = true;
    const inhibit = extensions.get(ID.inhibitAnyPolicy);
    if (inhibit) anyPolicyFor = Math.min(anyPolicyFor, smallNumber(new DerReader(inhibit.value).integer()));
  }
  return { policies, needsPolicy };
}

/** The purposes that a chain allows. */
export const purposesWithin = ({ usages }: ChainLimits): Purpose[] =>
  PURPOSES.filter((purpose) => usages === null || EKU[purpose].required.every((one) => usages.has(one)));

/** Extended key usages of a certificate for the purpose. */
export const usagesFor = (purpose: Purpose, { usages }: Pick<ChainLimits, 'usages'>): readonly string[] => {
  const { required, optional } = EKU[purpose];
  return [...required, ...optional.filter((one) => usages === null || usages.has(one))];
};

/** Policies that say what was validated, which only we can say, and the one that stands for all: none but our own is used. */
const CABF_POLICIES = '2.23.140.1.';
const isClaim = (policy: string): boolean => policy.startsWith(CABF_POLICIES) || policy === ANY_POLICY;

/**
 * Policies of a certificate for the purpose. Those of the chain that nothing else decides between are the operator's
 * choice. Throws UnusableChain when none would be valid and verifiers may ask for one.
 */
export function policiesFor(purpose: Purpose, { policies, needsPolicy }: ChainLimits, chosen: string | null): string[] {
  const own = OWN_POLICY[purpose];
  const isValid = (policy: string) => policies === null || policies.has(policy);
  if (chosen !== null) {
    if (chosen !== own && isClaim(chosen)) {
      throw new UnusableChain(`certificates for ${purpose} cannot claim the policy ${chosen}: choose one of your own`);
    }
    if (!isValid(chosen)) throw new UnusableChain(`its chain does not allow the policy ${chosen}`);
    return own === undefined || own === chosen ? [chosen] : [own, chosen];
  }
  if (own !== undefined && isValid(own)) return [own];
  if (policies === null) {
    if (!needsPolicy) return [];
    throw new UnusableChain('its chain requires a policy, and allows any: choose one of your own with --policy');
  }
  const [only, ...others] = [...policies].filter((one) => !isClaim(one));
  // A chain without policies in every certificate has none that is valid, and unless it asks for one that is no fault.
  if (only === undefined && policies.size === 0 && !needsPolicy) return own === undefined ? [] : [own];
  if (only === undefined) {
    throw new UnusableChain(`its chain requires a policy, and none is valid that certificates for ${purpose} may have`);
  }
  if (others.length > 0) {
    throw new UnusableChain(`its chain allows several policies, ${[only, ...others].join(', ')}: choose with --policy`);
  }
  return own === undefined ? [only] : [own, only];
}

/** Policies of what says nothing about a holder. Without one, verifiers refuse it where the chain requires a policy. */
export const requiredPolicies = ({ policies, needsPolicy }: ChainLimits, chosen: string | null): string[] =>
  needsPolicy ? (chosen === null ? [...(policies ?? [])] : [chosen]).filter((one) => !isClaim(one)) : [];
