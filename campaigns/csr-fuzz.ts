// Fuzzes the CSR parser: no invalid request may be accepted, and none may throw anything but its refusal. Valid requests
// are mutated: bytes, lengths, elements, text; some are re-signed, so that the error is behind a valid signature. Every
// accepted request is checked by an independent reader that shares no code with ours.
//
// The result is then compared with a library, @peculiar/x509. Every known difference was reviewed and is listed here; an
// unlisted one fails the campaign.
import { createPublicKey, randomInt, verify, webcrypto } from 'node:crypto';
import 'reflect-metadata';
import { cryptoProvider, Pkcs10CertificateRequest } from '@peculiar/x509';
import { type Csr, readCsr } from '../src/adapters/ca/csr.ts';
import { integer, NULL, raw, sequence, setOf } from '../src/adapters/der/writer.ts';
import { Refusal } from '../src/domain/errors.ts';
import { pem } from '../test/support/csr.ts';
import type { Campaign } from './campaign.ts';
import {
  type Mutant,
  makeOriginals,
  mutate,
  type Original,
  oneOf,
  PSS,
  randomFrom,
  resign,
  spanAt,
} from './csr-mutations.ts';

cryptoProvider.set(webcrypto);

interface Outcome {
  readonly name: string;
  readonly broken?: string;
  readonly ms: number;
  readonly accepted?: Csr;
  /** Text of the refusal and of its cause. */
  readonly refusal?: string;
}

const MAX_BROKEN = 20;
/** The library takes a millisecond per request. It checks all accepted requests and at most this many refused ones. */
const MAX_LIBRARY_CHECKS = Number(process.env.CAMPAIGN_ASKED ?? 50_000);

export const csrFuzz: Campaign = {
  about: 'N mutated CSRs: none accepted unsigned or against a library’s refusal; nothing thrown but the refusal',
  defaultN: 100_000,
  async run(count, print) {
    const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
    print(`seed ${seed} (CAMPAIGN_SEED sets it; keys and signatures are new in each run)`);
    const random = randomFrom(seed);
    const originals = makeOriginals();
    const broken: string[] = [];
    const [outcomes, differences] = [new Tally(), new Tally()];
    const oneIn = Math.ceil(count / MAX_LIBRARY_CHECKS);
    let [done, reading, slowest, accepted, asked] = [0, 0, 0, 0, 0];
    for (; done < count && broken.length < MAX_BROKEN; done += 1) {
      const original = oneOf(originals, random);
      const mutant = mutate(original, random);
      const outcome = outcomeOf(mutant, original);
      reading += outcome.ms;
      slowest = Math.max(slowest, outcome.ms);
      outcomes.add(outcome.name);
      const isAsked = outcome.accepted !== undefined || done % oneIn === 0;
      const difference = isAsked ? await differenceOf(mutant, outcome, original) : undefined;
      if (difference) differences.add(difference.name);
      if (outcome.accepted) accepted += 1;
      else if (isAsked) asked += 1;
      const fault = outcome.broken ?? difference?.broken;
      if (fault) broken.push(`${fault}: ${JSON.stringify(mutant.text)}`);
    }
    outcomes.print(print);
    print(`${Math.round((done / reading) * 1000)} requests per second, the slowest in ${slowest.toFixed(1)} ms`);
    print(`the library checked all ${accepted} accepted, and ${asked} of ${done - accepted} refused:`);
    differences.print(print);
    return broken;
  },
};

class Tally {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  print(line: (text: string) => void): void {
    for (const [name, times] of [...this.#counts].toSorted(([, one], [, other]) => other - one)) {
      line(`${String(times).padStart(8)}  ${name}`);
    }
  }
}

function outcomeOf({ text, isResigned }: Mutant, original: Original): Outcome {
  const started = performance.now();
  let accepted: Csr;
  try {
    accepted = readCsr(text);
  } catch (error) {
    const ms = performance.now() - started;
    const { code, facts } = error instanceof Refusal ? error : { code: 'none', facts: undefined };
    if (code !== 'invalid_csr' || !facts?.reason) return { name: 'THROWN', broken: `threw ${error}`, ms };
    // Without request-specific parts: the attribute at fault, the number of bits.
    const reason = facts.reason.en.replace(/(In the subject).*/, '$1').slice(0, 70);
    const cause = facts.cause instanceof Error ? facts.cause.message : '';
    return { name: `refused: ${reason}`, ms, refusal: `${reason}: ${cause}` };
  }
  const ms = performance.now() - started;
  const isSame = Buffer.from(accepted.der).equals(original.der);
  if (!isValidIndependently(accepted)) return { name: 'ACCEPTED UNSIGNED', broken: 'accepted unsigned', ms };
  if (isSame) return { name: 'accepted: the text was mutated, not the request', ms, accepted };
  if (isResigned) return { name: 'accepted: mutated and re-signed', ms, accepted };
  return { name: 'ACCEPTED ALTERED', broken: 'accepted other bytes than were signed', ms };
}

/** How to verify a signature, by the object identifiers in the algorithm's hex. */
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

/** Locates and verifies the signature without our parser. */
function isValidIndependently({ der, publicKey }: Csr): boolean {
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

/** The bytes that the library read, if it accepts their signature. */
async function readByLibrary(text: string): Promise<Buffer | undefined> {
  try {
    const request = new Pkcs10CertificateRequest(text);
    return (await request.verify()) ? Buffer.from(request.rawData) : undefined;
  } catch {
    return undefined;
  }
}

async function differenceOf({ text }: Mutant, { accepted, refusal }: Outcome, original: Original) {
  const read = await readByLibrary(text);
  if (accepted && !read) {
    const reason = await whyOnlyWeAccept(text, accepted.der, original);
    if (reason) return { name: `only we accept: ${reason}` };
    return { name: 'ONLY WE ACCEPT', broken: 'accepted, and the library does not' };
  }
  if (accepted && !read?.equals(accepted.der)) {
    return { name: 'THE LIBRARY READ OTHER BYTES', broken: 'accepted, and the library reads something else' };
  }
  if (accepted || !read || refusal === undefined) return undefined;
  const known = STRICTER.find(({ ours, holds }) => ours.test(refusal) && (holds?.(read, original) ?? true));
  if (known) return { name: `only the library accepts: ${known.why}` };
  return { name: 'ONLY THE LIBRARY ACCEPTS', broken: `refused (${refusal}), and the library accepts it` };
}

const withoutSpace = (text: string): string => text.replace(/\s+/g, '');
const base64Of = (der: Uint8Array): string => Buffer.from(der).toString('base64');

async function whyOnlyWeAccept(text: string, der: Uint8Array, original: Original): Promise<string | undefined> {
  if (withoutSpace(text) === withoutSpace(pem(der)) && (await readByLibrary(base64Of(der)))) {
    return 'white space in the PEM; without it the library agrees';
  }
  const emptied = withoutAttributeValues(der, original);
  if (emptied && (await readByLibrary(base64Of(emptied)))) {
    return 'the value of an attribute, which we ignore; without it the library agrees';
  }
  return undefined;
}

/** Replaces the value of every attribute with NULL, and re-signs. */
function withoutAttributeValues(der: Uint8Array, original: Original): Uint8Array | undefined {
  const info = spanAt(der, spanAt(der, 0).content);
  const subject = spanAt(der, spanAt(der, info.content).end);
  const attributes = spanAt(der, spanAt(der, subject.end).end);
  const emptied: Uint8Array[] = [];
  for (let at = attributes.content; at < attributes.end; at = spanAt(der, at).end) {
    const type = spanAt(der, spanAt(der, at).content);
    emptied.push(sequence([der.subarray(type.start, type.end), setOf([NULL])]));
  }
  const before = der.subarray(info.content, attributes.start);
  return resign(sequence([sequence([before, raw(0xa0, Buffer.concat(emptied))]), der.subarray(info.end)]), original);
}

interface Stricter {
  /** Matches the text of our refusal. */
  readonly ours: RegExp;
  readonly why: string;
  /** Additional condition for the difference to be this one. */
  readonly holds?: (read: Buffer, original: Original) => boolean;
}

const isOriginal = (read: Buffer, { der }: Original): boolean => read.equals(der);

/** What the library accepts and we refuse; each is also in test/support/wrong-csrs.ts, or was reviewed manually. */
const STRICTER: readonly Stricter[] = [
  {
    ours: /^Send exactly one PEM/,
    why: 'the first block of a text, with any label and anything around',
    holds: isOriginal,
  },
  { ours: /is not valid base64/, why: 'loose bits at the end of base64', holds: isOriginal },
  { ours: /^In the subject/, why: 'a name of the wrong length, type or characters' },
  {
    ours: /must be signed with RSA/,
    why: 'parameters of the signature algorithm that are missing, foreign or too many',
  },
  { ours: /is signed with SHA-1/, why: 'SHA-1' },
  { ours: /does not verify/, why: 'a signature in another form than its one', holds: hasOddSignature },
  { ours: /: unsupported algorithm$/, why: 'parameters of the key that are missing or too many' },
  { ours: /: not an uncompressed point$/, why: 'a point that is compressed or hybrid' },
  { ours: /: \d+ bytes too many$/, why: 'elements after the last' },
  { ours: /: truncated$/, why: 'an empty set, or an end within an element' },
  { ours: /: element exceeds its container$/, why: 'an element longer than what holds it' },
  { ours: /: (padded or indefinite length|length too long)$/, why: 'a padded or indefinite length' },
  { ours: /: padded (integer|object identifier)$/, why: 'a padded number' },
  { ours: /: (empty integer|not an object identifier)$/, why: 'a number without bytes, or too long a name' },
  { ours: /: not positive$/, why: 'a modulus that is written as a negative number' },
  { ours: /: not a bit string of whole bytes$/, why: 'a bit string with unused bits' },
  { ours: /: (tag \d+( where \d+ belongs)?|high tag number)$/, why: 'a tag of another class, type or form' },
  { ours: /: not a primitive element$/, why: 'a list where a name has text' },
  { ours: /: not version 1$/, why: 'another version' },
  { ours: /: attributes are missing$/, why: 'no attributes, not even an empty set' },
  {
    ours: /: (too many attributes|nested too deeply|arc too large)$/,
    why: 'more, deeper or larger than our bounds',
  },
];

/** True for an ECDSA signature that is not minimal DER, or an RSA signature of another length than its key. */
function hasOddSignature(read: Buffer, { key }: Original): boolean {
  const info = spanAt(read, spanAt(read, 0).content);
  const { content, end } = spanAt(read, spanAt(read, info.end).end);
  const signature = read.subarray(content + 1, end);
  const { modulusLength } = key.privateKey.asymmetricKeyDetails ?? {};
  if (modulusLength !== undefined) return signature.length !== modulusLength / 8;
  const r = spanAt(signature, spanAt(signature, 0).content);
  const s = spanAt(signature, r.end);
  const numbers = [r, s].map((one) => integer(signature.subarray(one.content, one.end)));
  return !signature.equals(sequence(numbers));
}
