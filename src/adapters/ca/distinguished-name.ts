// Reads distinguished names: as text for people, and in the canonical form that name constraints are compared in.
import { canonicalAttribute } from '../../domain/certificate/name-constraints.ts';
import { DerReader } from '../der/reader.ts';
import { TAG } from '../der/writer.ts';

const COMMON_NAME = '2.5.4.3';
const TYPES: Readonly<Record<string, string>> = {
  [COMMON_NAME]: 'CN',
  '2.5.4.5': 'serialNumber',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '0.9.2342.19200300.100.1.25': 'DC',
  '1.2.840.113549.1.9.1': 'emailAddress',
};

interface Part {
  /** The relative distinguished name, DER. */
  readonly der: Uint8Array;
  readonly attributes: readonly { readonly type: string; readonly value: string }[];
}

function partsOf(name: Uint8Array): Part[] {
  const outer = new DerReader(name).sequence();
  const parts: Part[] = [];
  while (!outer.isAtEnd) {
    const der = outer.any();
    const set = new DerReader(der).set();
    const attributes = [];
    while (!set.isAtEnd) {
      const attribute = set.sequence();
      const type = attribute.oid();
      attributes.push({ type, value: textOf(attribute.primitive()) });
    }
    parts.push({ der, attributes });
  }
  return parts;
}

/** Latin 1 for the types that old authorities have: what matters is that both sides of a comparison are read alike. */
function textOf({ tag, content }: { readonly tag: number; readonly content: Uint8Array }): string {
  const bytes = Buffer.from(content);
  if (tag === TAG.bmpString && bytes.length % 2 === 0) return bytes.swap16().toString('utf16le');
  return bytes.toString(tag === TAG.utf8String ? 'utf8' : 'latin1');
}

const joined = ({ attributes }: Part, show: (type: string, value: string) => string): string =>
  attributes
    .map(({ type, value }) => show(TYPES[type] ?? type, value))
    .sort()
    .join('+');

/** The relative distinguished names, from the top. */
export const canonicalParts = (name: Uint8Array): string[] =>
  partsOf(name).map((part) => joined(part, canonicalAttribute));

export const nameText = (name: Uint8Array): string =>
  partsOf(name)
    .map((part) => joined(part, (type, value) => `${type}=${value}`))
    .join(', ');

/** The relative distinguished names, DER. */
export const partsOfName = (name: Uint8Array): Uint8Array[] => partsOf(name).map(({ der }) => der);

/** The parts that a responder has in common with its issuer, DER: all but the common name. */
export const partsWithoutCommonName = (name: Uint8Array): Uint8Array[] =>
  partsOf(name)
    .filter(({ attributes }) => !attributes.some(({ type }) => type === COMMON_NAME))
    .map(({ der }) => der);
