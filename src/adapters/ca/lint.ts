// Pre-issuance lint: parses the bytes to be signed with the strict reader and compares them with what was decided. A
// finding is a bug of the service, never the caller's fault: nothing is signed, and callers get an internal error.

import { canonicalSubject, type NameConstraints, violationOf } from '../../domain/certificate/name-constraints.ts';
import { isAddress } from '../../domain/certificate/names.ts';
import type { SubjectFields } from '../../domain/certificate/subject.ts';
import { canonicalAddress } from '../../domain/egress/addresses.ts';
import { DAY_MS } from '../../kernel/durations.ts';
import { bitLength, DerReader, latin1 } from '../der/reader.ts';
import { type ReadExtension, readExtensions } from './certificate-reader.ts';
import { canonicalParts } from './distinguished-name.ts';

interface ExpectedContent {
  readonly algorithm: Uint8Array;
  readonly issuer: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly maxDays: number;
  readonly issuerNotBefore: number;
  readonly issuerNotAfter: number;
  readonly commonName: string | null;
  readonly names: readonly string[];
  readonly subject: SubjectFields | null;
  readonly isShortLived: boolean;
  readonly spki: Uint8Array;
  readonly issuerKeyId: Uint8Array;
  readonly nameConstraints: readonly NameConstraints[];
  /** Whether the issuer's chain allows this purpose. */
  readonly isWithinPurposes: boolean;
}

const MIN_SERIAL_BYTES = 8;
const MAX_SERIAL_BITS = 159;
const SAN = '2.5.29.17';
const AKI = '2.5.29.35';
const CRLS = '2.5.29.31';

/** Returns findings for the log; empty when the bytes are as expected. */
export function lint(toBeSigned: Uint8Array, expected: ExpectedContent): string[] {
  const findings: string[] = [];
  const expect = (isTrue: boolean, finding: string) => {
    if (!isTrue) findings.push(finding);
  };
  try {
    const reader = new DerReader(toBeSigned).sequence();
    const version = reader.context(0)?.integer();
    expect(version?.length === 1 && version[0] === 2, 'version is not 3');
    const serial = reader.positive();
    expect(serial.length >= MIN_SERIAL_BYTES, 'serial number is too short');
    expect(bitLength(serial) <= MAX_SERIAL_BITS, 'serial number is too long');
    expect(same(reader.any(), expected.algorithm), 'signature algorithm differs');
    expect(same(reader.any(), expected.issuer), 'issuer differs');
    const validity = reader.sequence();
    const [from, to] = [parseTime(validity.primitive().content), parseTime(validity.primitive().content)];
    validity.end();
    expect(from === expected.notBefore && to === expected.notAfter, 'validity differs');
    expect(to > from, 'notAfter is before notBefore');
    expect(to - from < expected.maxDays * DAY_MS, 'validity exceeds the maximum of the product');
    expect(from >= expected.issuerNotBefore, 'begins before its issuer');
    expect(to <= expected.issuerNotAfter, 'outlives its issuer');
    const subject = reader.any();
    const hasSubject = subject.length > 2;
    const { names, commonName, nameConstraints, isWithinPurposes } = expected;
    const holder = names.length === 0 ? commonName : null;
    expect(holder === null || isSubject(subject, holder, expected.subject), 'subject differs');
    expect(isWithinPurposes, 'the issuer may not sign for this purpose');
    const violation = violationOf(nameConstraints, { names, holder, subject: expected.subject });
    expect(violation === undefined, 'outside of the name constraints of the issuer');
    expect(same(reader.any(), expected.spki), 'public key differs');
    const extensions = readExtensions(reader);
    expect(!extensions.hasDuplicates, 'duplicate extension');
    expect(extensions.byId.has(CRLS) !== expected.isShortLived, 'pointers to its status differ');
    reader.end();
    lintNames(extensions.byId.get(SAN), expected, hasSubject, expect);
    const authority = extensions.byId.get(AKI)?.value;
    expect(
      authority !== undefined && same(new DerReader(authority).sequence().primitive().content, expected.issuerKeyId),
      'authority key identifier differs',
    );
  } catch (error) {
    findings.push(`cannot be parsed: ${error instanceof Error ? error.message : String(error)}`);
  }
  return findings;
}

function lintNames(
  san: ReadExtension | undefined,
  { names, commonName }: ExpectedContent,
  hasSubject: boolean,
  expect: (isTrue: boolean, finding: string) => void,
): void {
  const written: string[] = [];
  if (san) {
    const list = new DerReader(san.value).sequence();
    while (!list.isAtEnd) {
      const { tag, content } = list.primitive();
      expect(tag === 0x82 || tag === 0x87, 'subject alternative name is neither a DNS name nor an address');
      const text = tag === 0x87 ? canonicalAddress(content) : latin1(content);
      // A name that reads as an address would be compared as one by no verifier.
      expect(tag === 0x87 || !isAddress(text), 'an address is written as a DNS name');
      written.push(text);
    }
    expect(
      san.isCritical === !hasSubject,
      'subject alternative names must be critical exactly when the subject is empty',
    );
  }
  expect(
    written.length === names.length && written.every((name, index) => name === names[index]),
    'subject alternative names differ',
  );
  expect(hasSubject || names.length > 0, 'neither subject nor subject alternative names');
  expect(
    names.length === 0 || commonName === null || names.includes(commonName),
    'common name is not among the subject alternative names',
  );
}

const isSubject = (name: Uint8Array, holder: string, fields: SubjectFields | null): boolean =>
  canonicalParts(name).join('\n') === canonicalSubject(holder, fields).join('\n');

const same = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;

const UTC_TIME_BYTES = 'YYMMDDHHMMSSZ'.length;
const [DIGIT_0, LETTER_Z] = [0x30, 0x5a];

/** UTCTime or GeneralizedTime, both in whole seconds and UTC; NaN for anything else. */
function parseTime(content: Uint8Array): number {
  const behind = content.length - UTC_TIME_BYTES;
  if ((behind !== 0 && behind !== 2) || content[content.length - 1] !== LETTER_Z) return Number.NaN;
  const pair = (index: number) => twoDigits(content, behind + 2 * index);
  const century = behind === 2 ? twoDigits(content, 0) : pair(0) < 50 ? 20 : 19;
  const [month, day, hour, minute, second] = [pair(1), pair(2), pair(3), pair(4), pair(5)];
  const time = Date.UTC(100 * century + pair(0), month - 1, day, hour, minute, second);
  // Otherwise it was no date: Date.UTC reads February 30 as March 2.
  const isDate = new Date(time).getUTCDate() === day && month >= 1 && month <= 12;
  return isDate && hour < 24 && minute < 60 && second < 60 ? time : Number.NaN;
}

function twoDigits(content: Uint8Array, at: number): number {
  const [tens, ones] = [content[at]! - DIGIT_0, content[at + 1]! - DIGIT_0];
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? 10 * tens + ones : Number.NaN;
}
