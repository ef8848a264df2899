// The last look before a signature that cannot be taken back: the bytes to be signed are read again, by the reader
// that reads strangers' bytes, and compared with what was decided. A finding here is a bug of ours, never the
// caller's fault, so nothing is signed and nobody is told more than that.

import { DerReader } from '../der/reader.ts';
import { type ReadExtension, readExtensions } from './certificate-reader.ts';

export interface Decided {
  readonly algorithm: Uint8Array;
  readonly issuer: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly maxDays: number;
  readonly issuerNotAfter: number;
  readonly commonName: string | null;
  readonly names: readonly string[];
  readonly spki: Uint8Array;
  readonly issuerKeyId: Uint8Array;
}

const DAY_MS = 86_400_000;
const MIN_SERIAL_BYTES = 8;
const MAX_SERIAL_BITS = 159;
const SAN = '2.5.29.17';
const AKI = '2.5.29.35';

/** What is wrong, in words for the log; empty when all is as decided. */
export function lint(toBeSigned: Uint8Array, decided: Decided): string[] {
  const findings: string[] = [];
  const expect = (isTrue: boolean, finding: string) => {
    if (!isTrue) findings.push(finding);
  };
  try {
    const reader = new DerReader(toBeSigned).sequence();
    const version = reader.context(0)?.integer();
    expect(version?.length === 1 && version[0] === 2, 'the version is not 3');
    const serial = reader.positive();
    expect(serial.length >= MIN_SERIAL_BYTES, 'the serial number is too short to be random');
    expect(bitsOf(serial) <= MAX_SERIAL_BITS, 'the serial number is too long');
    expect(same(reader.any(), decided.algorithm), 'the signature algorithm is another one');
    expect(same(reader.any(), decided.issuer), 'the issuer is another one');
    const validity = reader.sequence();
    const [from, to] = [momentOf(validity.primitive().content), momentOf(validity.primitive().content)];
    validity.end();
    expect(from === decided.notBefore && to === decided.notAfter, 'the validity is another one');
    expect(to > from, 'it ends before it begins');
    expect(to - from < decided.maxDays * DAY_MS, 'it lives longer than the product allows');
    expect(to <= decided.issuerNotAfter, 'it outlives its issuer');
    const isNamed = reader.any().length > 2;
    expect(same(reader.any(), decided.spki), 'the key is another one');
    const extensions = readExtensions(reader);
    expect(!extensions.hasDuplicates, 'an extension is there twice');
    reader.end();
    lintNames(extensions.byId.get(SAN), decided, isNamed, expect);
    const authority = extensions.byId.get(AKI)?.value;
    expect(
      authority !== undefined && same(new DerReader(authority).sequence().primitive().content, decided.issuerKeyId),
      'the key identifier of the issuer is another one',
    );
  } catch (error) {
    findings.push(`it cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  return findings;
}

function lintNames(
  san: ReadExtension | undefined,
  { names, commonName }: Decided,
  isNamed: boolean,
  expect: (isTrue: boolean, finding: string) => void,
): void {
  const written: string[] = [];
  if (san) {
    const list = new DerReader(san.value).sequence();
    while (!list.isAtEnd) {
      const { tag, content } = list.primitive();
      expect(tag === 0x82, 'a name is not a DNS name');
      written.push(Buffer.from(content).toString('latin1'));
    }
    expect(san.isCritical === !isNamed, 'the names are critical exactly when there is no subject');
  }
  expect(
    written.length === names.length && written.every((name, index) => name === names[index]),
    'the names are other ones',
  );
  expect(isNamed || names.length > 0, 'it identifies nobody');
  expect(
    names.length === 0 || commonName === null || names.includes(commonName),
    'the common name is none of the names',
  );
}

const same = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;

const bitsOf = (bytes: Uint8Array): number => bytes.length * 8 - Math.clz32(bytes[0] ?? 0) + 24;

/** UTCTime or GeneralizedTime, both in whole seconds and UTC. */
function momentOf(content: Uint8Array): number {
  const text = Buffer.from(content).toString('latin1');
  const [, year = '', month, day, hour, minute, second] =
    /^(\d{2}|\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/.exec(text) ?? [];
  const full = year.length === 4 ? year : `${Number(year) < 50 ? '20' : '19'}${year}`;
  return Date.parse(`${full}-${month}-${day}T${hour}:${minute}:${second}Z`);
}
