// Valid certificate signing requests and mutations of them: of the PEM text, of single bytes and lengths, and of whole
// DER elements with the enclosing lengths adjusted.
import { constants, sign } from 'node:crypto';
import { raw } from '../src/adapters/der/writer.ts';
import { csr, type KeyPair, keyPair, pem, pssAlgorithm } from '../test/support/csr.ts';
import { VALID_CSRS } from '../test/support/wrong-csrs.ts';
import { seededRandom } from './random.ts';

export interface Original {
  readonly der: Uint8Array;
  readonly key: KeyPair;
  readonly hash: string;
  readonly padding: { readonly padding?: number; readonly saltLength?: number };
}

export interface Mutant {
  readonly text: string;
  /** Without a new signature, only the original bytes may be accepted. */
  readonly isResigned: boolean;
}

/** A whole number from 0 up to, but not including, the limit. */
type Random = (limit: number) => number;

const MAX_MUTATIONS = 3;
export const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

/** Mostly P-256, because the other curves are slow. */
export function makeOriginals(): Original[] {
  const p256 = { key: keyPair('p256'), hash: 'sha256', padding: {} };
  const rsa = { ...p256, key: keyPair('rsa2048') };
  const slow = (['p384', 'p521'] as const).map((kind) => ({ ...p256, key: keyPair(kind) }));
  return [
    ...Object.values(VALID_CSRS).map((parts) => ({ ...p256, der: csr(parts) })),
    ...[p256, { ...p256, hash: 'sha512' }, rsa, { ...rsa, hash: 'sha384' }, ...slow].map((one) => ({
      ...one,
      der: csr({ key: one.key, hash: one.hash }),
    })),
    { ...rsa, padding: PSS, der: csr({ key: rsa.key, pssSalt: 32, algorithm: pssAlgorithm({}) }) },
  ];
}

/** Offsets of a DER element and its content. Does not validate. */
export function spanAt(bytes: Uint8Array, start: number): { start: number; content: number; end: number } {
  const first = bytes[start + 1] ?? 0;
  const digits = first < 0x80 ? 0 : first & 0x7f;
  let length = digits === 0 ? first : 0;
  for (let index = 0; index < digits; index += 1) length = length * 256 + (bytes[start + 2 + index] ?? 0);
  const content = start + 2 + digits;
  return { start, content, end: content + length };
}

export function mutate(original: Original, random: Random): Mutant {
  const kind = random(10);
  if (kind < 2) return { text: mutateText(pem(original.der), random), isResigned: false };
  let der = original.der;
  const mutations = kind < 6 ? BYTE_MUTATIONS : ELEMENT_MUTATIONS;
  for (let left = 1 + random(MAX_MUTATIONS); left > 0 && der.length > 0; left -= 1)
    der = oneOf(mutations, random)(der, random);
  const again = random(2) === 0 ? resign(der, original) : undefined;
  return { text: Buffer.from(again ?? der).toString('base64'), isResigned: again !== undefined };
}

/** Undefined if the structure is too damaged to locate what is signed. */
export function resign(der: Uint8Array, { key, hash, padding }: Original): Uint8Array | undefined {
  const info = spanAt(der, spanAt(der, 0).content);
  const algorithm = spanAt(der, info.end);
  if (algorithm.end >= der.length) return undefined;
  const signed = der.subarray(info.start, info.end);
  const signature = sign(hash, signed, { key: key.privateKey, ...padding });
  return raw(
    0x30,
    Buffer.concat([der.subarray(info.start, algorithm.end), raw(0x03, Buffer.concat([ZERO, signature]))]),
  );
}

type Mutation = (der: Uint8Array, random: Random) => Uint8Array;

const ZERO = Uint8Array.of(0);
const spliced = (der: Uint8Array, start: number, end: number, middle: Uint8Array): Uint8Array =>
  new Uint8Array(Buffer.concat([der.subarray(0, start), middle, der.subarray(end)]));
const someBytes = (random: Random): Uint8Array => Uint8Array.from({ length: 1 + random(4) }, () => random(256));

/** Enclosing lengths become wrong. */
const BYTE_MUTATIONS: readonly Mutation[] = [
  (der, random) => der.with(random(der.length), random(256)),
  (der, random) => {
    const at = random(der.length);
    return der.with(at, der[at]! ^ (1 << random(8)));
  },
  (der, random) => der.slice(0, 1 + random(der.length)),
  (der, random) => spliced(der, random(der.length), der.length, someBytes(random)),
  (der, random) => {
    const at = random(der.length);
    return spliced(der, at, at, someBytes(random));
  },
  (der, random) => {
    const at = random(der.length);
    return spliced(der, at, Math.min(der.length, at + 1 + random(4)), new Uint8Array());
  },
  // A length that is off by one, in a non-minimal form, or indefinite.
  (der, random) => {
    const { start, content, end } = oneOf(spansOf(der), random);
    const length = end - content;
    const forms = [
      Uint8Array.of((der[start + 1]! + 1 + random(2) * 254) & 0xff),
      Uint8Array.of(0x83, 0, length >> 8, length & 0xff),
      Uint8Array.of(0x80),
    ];
    return spliced(der, start + 1, random(2) === 0 ? start + 2 : content, oneOf(forms, random));
  },
];

/** Enclosing lengths are adjusted. */
const ELEMENT_MUTATIONS: readonly Mutation[] = [
  (der, random) => replaced(der, random, () => new Uint8Array()),
  (der, random) => replaced(der, random, (element) => Buffer.concat([element, element])),
  (der, random) => replaced(der, random, (element) => raw(oneOf([0x30, 0x31, 0xa0, 0x04], random), element)),
  (der, random) => replaced(der, random, (element) => element.with(0, random(256))),
  (der, random) => replaced(der, random, (element) => element.subarray(spanAt(element, 0).content)),
  (der, random) => replaced(der, random, (element) => raw(element[0]!, someBytes(random))),
  (der, random) => replaced(der, random, () => raw(random(256), someBytes(random))),
  (der, random) => {
    const { start, end } = oneOf(spansOf(der), random);
    return replaced(der, random, () => der.slice(start, end));
  },
];

function replaced(der: Uint8Array, random: Random, change: (element: Uint8Array) => Uint8Array): Uint8Array {
  const spans = spansOf(der);
  const target = oneOf(spans, random);
  let [start, end, middle] = [target.start, target.end, change(der.slice(target.start, target.end))];
  // From the innermost enclosing element outwards; spans are listed outer first.
  for (const around of spans.filter((one) => one.content <= target.start && one.end >= target.end).reverse()) {
    const content = Buffer.concat([der.subarray(around.content, start), middle, der.subarray(end, around.end)]);
    [start, end, middle] = [around.start, around.end, raw(der[around.start]!, content)];
  }
  return spliced(der, start, end, middle);
}

/** All elements, outer before inner, as far as the bytes still parse. */
function spansOf(der: Uint8Array): ReturnType<typeof spanAt>[] {
  const spans = [spanAt(der, 0)].map((one) => ({ ...one, end: der.length }));
  for (const outer of spans) {
    if (((der[outer.start] ?? 0) & 0x20) === 0) continue;
    for (let at = outer.content; at + 2 <= outer.end; ) {
      const inner = spanAt(der, at);
      if (inner.end > outer.end) break;
      spans.push(inner);
      at = inner.end;
    }
  }
  return spans;
}

function mutateText(text: string, random: Random): string {
  const lines = text.split('\n');
  const at = random(text.length);
  const line = random(lines.length);
  const put = (what: string, gone = 0) => text.slice(0, at) + what + text.slice(at + gone);
  return oneOf(
    [
      () => put(oneOf([' ', '\n', '\r\n', '\t', '\n\n'], random)),
      () => put(String.fromCharCode(random(0x180)), 1),
      () => put(oneOf(['=', '-', '\0', '\ufeff', '\ud800', '-----BEGIN ', '-----END '], random)),
      () => put('', 1 + random(4)),
      () => text.slice(0, at),
      () => text.slice(at),
      () => text.replaceAll('\n', oneOf(['\r\n', '', ' ', '\\n', '\r'], random)),
      () => text.replaceAll('CERTIFICATE', oneOf(['NEW CERTIFICATE', '', 'X509', 'PRIVATE'], random)),
      () => lines.toSpliced(line, 1).join('\n'),
      () => lines.toSpliced(line, 0, lines[random(lines.length)]!).join('\n'),
      () => text + text,
      () => `${'text '.repeat(random(20))}\n${text}`,
      () => text.replace(/=*\n-----END/, oneOf(['\n-----END', '=\n-----END', '==\n-----END'], random)),
    ],
    random,
  )();
}

export const oneOf = <T>(list: readonly T[], random: Random): T => list[random(list.length)]!;

export function randomFrom(seed: number): Random {
  const random = seededRandom(seed);
  return (limit) => Math.floor(random() * limit);
}
