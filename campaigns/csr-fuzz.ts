// Does a certificate signing request that is not right ever get through, or ever throw anything but its refusal?
// Right requests are bent in every way a broken program or an attacker might: bytes, lengths, elements, text; some
// are signed again afterwards, so that what is wrong lies behind a good signature. Whatever is accepted is judged by
// a second reader of its own, which shares no code with ours and knows only where things lie.
import { constants, createPublicKey, randomInt, sign, verify } from 'node:crypto';
import { type Csr, readCsr } from '../src/adapters/ca/csr.ts';
import { raw } from '../src/adapters/ca/der.ts';
import { Refusal } from '../src/domain/errors.ts';
import { csr, type KeyPair, keyPair, pem, pssAlgorithm } from '../test/support/csr.ts';
import { RIGHT } from '../test/support/wrong-csrs.ts';
import type { Campaign } from './run.ts';

interface Original {
  readonly der: Uint8Array;
  readonly key: KeyPair;
  readonly hash: string;
  readonly padding: { readonly padding?: number; readonly saltLength?: number };
}

interface Bent {
  readonly text: string;
  /** Of bytes that were not signed again, only the original ones may be accepted. */
  readonly isSignedAgain: boolean;
}

interface Outcome {
  readonly name: string;
  readonly broken?: string;
  readonly ms: number;
}

/** A whole number from 0 up to, and not including, the limit. */
type Random = (limit: number) => number;

const MAX_BROKEN = 20;
const MAX_BENDS = 3;
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

export const csrFuzz: Campaign = {
  about: 'N bent certificate signing requests: none accepted that is not signed, nothing thrown but the refusal',
  defaultN: 100_000,
  async run(count, print) {
    const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
    print(`seed ${seed} (CAMPAIGN_SEED sets it; keys and signatures are new all the same)`);
    const random = randomFrom(seed);
    const originals = makeOriginals();
    const broken: string[] = [];
    const counts = new Map<string, number>();
    let [done, reading, slowest] = [0, 0, 0];
    for (; done < count && broken.length < MAX_BROKEN; done += 1) {
      const original = oneOf(originals, random);
      const bent = bend(original, random);
      const outcome = outcomeOf(bent, original);
      reading += outcome.ms;
      slowest = Math.max(slowest, outcome.ms);
      counts.set(outcome.name, (counts.get(outcome.name) ?? 0) + 1);
      if (outcome.broken) broken.push(`${outcome.broken}: ${JSON.stringify(bent.text)}`);
    }
    for (const [name, times] of [...counts].toSorted(([, one], [, other]) => other - one)) {
      print(`${String(times).padStart(8)}  ${name}`);
    }
    print(`${Math.round((done / reading) * 1000)} requests per second, the slowest in ${slowest.toFixed(1)} ms`);
    return broken;
  },
};

/** P-256 more often than the slow curves, so that the time goes into many requests. */
function makeOriginals(): Original[] {
  const p256 = { key: keyPair('p256'), hash: 'sha256', padding: {} };
  const rsa = { ...p256, key: keyPair('rsa2048') };
  const slow = (['p384', 'p521'] as const).map((kind) => ({ ...p256, key: keyPair(kind) }));
  return [
    ...Object.values(RIGHT).map((parts) => ({ ...p256, der: csr(parts) })),
    ...[p256, { ...p256, hash: 'sha512' }, rsa, { ...rsa, hash: 'sha384' }, ...slow].map((one) => ({
      ...one,
      der: csr({ key: one.key, hash: one.hash }),
    })),
    { ...rsa, padding: PSS, der: csr({ key: rsa.key, pssSalt: 32, algorithm: pssAlgorithm({}) }) },
  ];
}

function outcomeOf({ text, isSignedAgain }: Bent, original: Original): Outcome {
  const started = performance.now();
  let accepted: Csr;
  try {
    accepted = readCsr(text);
  } catch (error) {
    const ms = performance.now() - started;
    const reason = error instanceof Refusal && error.code === 'invalid_csr' ? error.facts.reason?.en : undefined;
    if (reason === undefined) return { name: 'THROWN', broken: `threw ${error}`, ms };
    // Without what differs from request to request: the attribute at fault, the number of bits.
    return { name: `refused: ${reason.replace(/(In the subject).*/, '$1').slice(0, 70)}`, ms };
  }
  const ms = performance.now() - started;
  const isSame = Buffer.from(accepted.der).equals(original.der);
  if (!isRightToTheSecondReader(accepted)) return { name: 'ACCEPTED UNSIGNED', broken: 'accepted unsigned', ms };
  if (isSame) return { name: 'accepted: the text was bent, not the request', ms };
  if (isSignedAgain) return { name: 'accepted: bent, and signed again', ms };
  return { name: 'ACCEPTED ALTERED', broken: 'accepted other bytes than were signed', ms };
}

/** Where an element begins, where its content does, and where it ends; no questions asked. */
function spanAt(bytes: Uint8Array, start: number): { start: number; content: number; end: number } {
  const first = bytes[start + 1] ?? 0;
  const digits = first < 0x80 ? 0 : first & 0x7f;
  let length = digits === 0 ? first : 0;
  for (let index = 0; index < digits; index += 1) length = length * 256 + (bytes[start + 2 + index] ?? 0);
  const content = start + 2 + digits;
  return { start, content, end: content + length };
}

/** What an algorithm's bytes, in hex, must hold, and how it is verified. */
const VERIFICATIONS = [
  { named: /2a864886f70d01010b/, hash: 'sha256', padding: {} },
  { named: /2a864886f70d01010c/, hash: 'sha384', padding: {} },
  { named: /2a864886f70d01010d/, hash: 'sha512', padding: {} },
  { named: /2a8648ce3d040302/, hash: 'sha256', padding: {} },
  { named: /2a8648ce3d040303/, hash: 'sha384', padding: {} },
  { named: /2a8648ce3d040304/, hash: 'sha512', padding: {} },
  { named: /2a864886f70d01010a.*608648016503040201/, hash: 'sha256', padding: PSS },
  { named: /2a864886f70d01010a.*608648016503040202/, hash: 'sha384', padding: PSS },
  { named: /2a864886f70d01010a.*608648016503040203/, hash: 'sha512', padding: PSS },
] as const;

function isRightToTheSecondReader({ der, publicKey }: Csr): boolean {
  const bytes = Buffer.from(der);
  const info = spanAt(bytes, spanAt(bytes, 0).content);
  const algorithm = spanAt(bytes, info.end);
  const signature = spanAt(bytes, algorithm.end);
  const subject = spanAt(bytes, spanAt(bytes, info.content).end);
  const spki = bytes.subarray(subject.end, spanAt(bytes, subject.end).end);
  const name = bytes.toString('hex', algorithm.start, algorithm.end);
  const how = VERIFICATIONS.find(({ named }) => named.test(name));
  if (!how || signature.end !== bytes.length || !spki.equals(publicKey.spki)) return false;
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  const signed = bytes.subarray(info.start, info.end);
  return verify(how.hash, signed, { key, ...how.padding }, bytes.subarray(signature.content + 1, signature.end));
}

function bend(original: Original, random: Random): Bent {
  const kind = random(10);
  if (kind < 2) return { text: bendText(pem(original.der), random), isSignedAgain: false };
  let der = original.der;
  const bends = kind < 6 ? BYTE_BENDS : ELEMENT_BENDS;
  for (let left = 1 + random(MAX_BENDS); left > 0 && der.length > 0; left -= 1) der = oneOf(bends, random)(der, random);
  const again = random(2) === 0 ? signAgain(der, original) : undefined;
  return { text: Buffer.from(again ?? der).toString('base64'), isSignedAgain: again !== undefined };
}

/** Undefined when the elements are not where they belong any more. */
function signAgain(der: Uint8Array, { key, hash, padding }: Original): Uint8Array | undefined {
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

type Bend = (der: Uint8Array, random: Random) => Uint8Array;

const ZERO = Uint8Array.of(0);
const spliced = (der: Uint8Array, start: number, end: number, middle: Uint8Array): Uint8Array =>
  new Uint8Array(Buffer.concat([der.subarray(0, start), middle, der.subarray(end)]));
const someBytes = (random: Random): Uint8Array => Uint8Array.from({ length: 1 + random(4) }, () => random(256));

/** These leave the lengths around them wrong. */
const BYTE_BENDS: readonly Bend[] = [
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
  // A length one off, in a longer form than it needs, or indefinite.
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

/** These bend one element, and the lengths around it follow. */
const ELEMENT_BENDS: readonly Bend[] = [
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
  // From the inside out: the spans around the target, the innermost last in the list.
  for (const around of spans.filter((one) => one.content <= target.start && one.end >= target.end).reverse()) {
    const content = Buffer.concat([der.subarray(around.content, start), middle, der.subarray(end, around.end)]);
    [start, end, middle] = [around.start, around.end, raw(der[around.start]!, content)];
  }
  return spliced(der, start, end, middle);
}

/** Every element, outer before inner, as far as the bytes still make sense. */
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

function bendText(text: string, random: Random): string {
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

const oneOf = <T>(list: readonly T[], random: Random): T => list[random(list.length)]!;

/** mulberry32: small, and good enough to choose among ways to go wrong. */
function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return Math.floor((((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
}
