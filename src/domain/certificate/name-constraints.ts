// Name constraints of an authority (RFC 5280, 4.2.1.10): which names it may certify. Read at import, and applied to every
// order before anything is validated: a certificate outside of them would be refused by every verifier.
import { type Address, canonicalAddress, isInside, type Network, parseAddress } from '../egress/addresses.ts';
import { hostOf, isAddress, isWildcard } from './names.ts';
import { NO_FIELDS, type SubjectFields, subjectAttributes } from './subject.ts';

/** `email` and `uri` constrain nothing here: no certificate of this service carries such names. */
export type Subtree =
  | { readonly form: 'dns' | 'email' | 'uri'; readonly base: string }
  | { readonly form: 'ip'; readonly base: Network }
  /** Relative distinguished names from the top, each in canonical form. */
  | { readonly form: 'directory'; readonly base: readonly string[] };

type Form = Subtree['form'];

export interface NameConstraints {
  readonly permitted: readonly Subtree[];
  readonly excluded: readonly Subtree[];
}

export interface ConstraintViolation {
  /** As it was asked for. */
  readonly name: string;
  readonly kind: 'permitted' | 'excluded';
  /** What is permitted for names of this form, or the subtree that is excluded. */
  readonly constraint: string;
}

interface CertifiedNames {
  /** DNS names and addresses. */
  readonly names: readonly string[];
  /** The holder of a certificate without such names. */
  readonly holder: string | null;
  /** What is certified about the holder besides. */
  readonly subject?: SubjectFields | null;
}

/** The first name that a chain may not certify; undefined when it may certify all. */
export function violationOf(
  chain: readonly NameConstraints[],
  { names, holder, subject }: CertifiedNames,
): ConstraintViolation | undefined {
  if (chain.length === 0) return undefined;
  const all = [...names.map(subjectOf), ...(holder === null ? [] : holderSubjects(holder, subject ?? NO_FIELDS))];
  for (const constraints of chain) {
    for (const subject of all) {
      const found = violationBy(constraints, subject);
      if (found) return found;
    }
  }
  return undefined;
}

/**
 * Whether verifiers hold the subject of a certificate with these names to the constraints: such a certificate is issued
 * without one. Those on directory names are meant for holders. OpenSSL takes a common name for a host name where there are
 * addresses only.
 */
export const limitsSubject = (chain: readonly NameConstraints[], names: readonly string[]): boolean =>
  chain.some(({ permitted, excluded }) =>
    [...permitted, ...excluded].some(({ form }) => form === 'directory' || (form === 'dns' && names.every(isAddress))),
  );

/** Whether a distinguished name, given by its canonical parts, is within the constraints. */
export const permitsDirectoryName = (chain: readonly NameConstraints[], parts: readonly string[]): boolean =>
  chain.every((one) => violationBy(one, { form: 'directory', name: parts.join(', '), value: parts }) === undefined);

type Subject =
  | { readonly form: 'dns'; readonly name: string; readonly value: string }
  | { readonly form: 'ip'; readonly name: string; readonly value: Address }
  | { readonly form: 'directory'; readonly name: string; readonly value: readonly string[] };

function subjectOf(name: string): Subject {
  const address = parseAddress(name);
  return address ? { form: 'ip', name, value: address } : { form: 'dns', name, value: name.toLowerCase() };
}

/** OpenSSL takes a common name that looks like a host name for one, also 10.0.0.1, where there are no other names. */
const HOST_NAME = /^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/i;

function holderSubjects(holder: string, fields: SubjectFields): Subject[] {
  const attributes = subjectAttributes(fields, holder);
  const name = attributes.length === 1 ? holder : attributes.map(([type, value]) => `${type}=${value}`).join(', ');
  const value = canonicalSubject(holder, fields);
  const host: Subject[] = HOST_NAME.test(holder) ? [{ form: 'dns', name: holder, value: holder.toLowerCase() }] : [];
  return [{ form: 'directory', name, value }, ...host];
}

/** The canonical parts of a holder's subject, from the top. */
export const canonicalSubject = (holder: string, fields: SubjectFields | null): string[] =>
  subjectAttributes(fields ?? NO_FIELDS, holder).map(([type, value]) => canonicalAttribute(type, value));

function violationBy({ permitted, excluded }: NameConstraints, subject: Subject): ConstraintViolation | undefined {
  const { name, form } = subject;
  const out = excluded.find((one) => meets(one, subject));
  if (out) return { name, kind: 'excluded', constraint: subtreeText(out) };
  const same = permitted.filter((one) => one.form === form);
  if (same.length === 0 || same.some((one) => contains(one, subject))) return undefined;
  return { name, kind: 'permitted', constraint: same.map(subtreeText).join(', ') };
}

/** Whether every name that the subject stands for is in the subtree. */
function contains(subtree: Subtree, subject: Subject): boolean {
  if (subtree.form === 'dns' && subject.form === 'dns') return isBelow(subject.value, subtree.base);
  if (subtree.form === 'ip' && subject.form === 'ip') return isInside(subtree.base, subject.value);
  if (subtree.form !== 'directory' || subject.form !== 'directory') return false;
  return subtree.base.every((part, index) => part === subject.value[index]);
}

/** Whether any name that the subject stands for is in the subtree: a wildcard also stands for an excluded neighbour. */
const meets = (subtree: Subtree, subject: Subject): boolean =>
  contains(subtree, subject) ||
  (subtree.form === 'dns' &&
    subject.form === 'dns' &&
    isWildcard(subject.value) &&
    parentOf(subtree.base) === hostOf(subject.value));

const parentOf = (base: string): string => base.replace(/^\./, '').replace(/^[^.]*\.?/, '');

/** With a leading dot the base stands for names below it only. */
function isBelow(name: string, base: string): boolean {
  if (base === '' || name === base) return true;
  return name.endsWith(base.startsWith('.') ? base : `.${base}`);
}

/** As verifiers compare attributes: without regard to case and repeated blanks. */
export const canonicalAttribute = (type: string, value: string): string =>
  `${type}=${value.trim().replace(/\s+/g, ' ').toLowerCase()}`;

const LABELS: Readonly<Record<Form, string>> = {
  ...{ dns: 'DNS', email: 'email', uri: 'URI', ip: 'IP', directory: 'DirName' },
};

export function subtreeText(subtree: Subtree): string {
  const label = LABELS[subtree.form];
  if (subtree.form === 'ip') return `${label}:${canonicalAddress(subtree.base.address)}/${subtree.base.prefix}`;
  return `${label}:${subtree.form === 'directory' ? subtree.base.join(', ') : subtree.base}`;
}
