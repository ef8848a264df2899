// Lists of compromised keys, in the forms in which they are published. Each entry has a line; # begins a comment. The form
// of an entry follows from its length, and one file may mix them.
import { EXIT, Problem } from '../../kernel/problem.ts';
import { modulusFingerprint } from './rsa-numbers.ts';

export interface Blocklist {
  /** As the store keeps them: see `listedAs`. */
  readonly fingerprints: readonly string[];
  readonly counts: Readonly<Record<EntryForm, number>>;
}

interface Form {
  readonly pattern: RegExp;
  readonly fingerprint: (entry: string) => string;
}

const FORMS = {
  /** SHA-256 of the SubjectPublicKeyInfo. */
  spki_sha256: { pattern: /^[0-9a-f]{64}$/, fingerprint: (entry) => entry },
  /** Debian's openssl-blacklist. */
  debian: { pattern: /^[0-9a-f]{20}$/, fingerprint: (entry) => entry },
  /** From 512 bits to 16384, as `openssl rsa -modulus` prints it, or the digits alone. */
  modulus: {
    pattern: /^(?:modulus=|0x)?(?:[0-9a-f]{2}){64,2049}$/,
    fingerprint: (entry) => modulusFingerprint(Buffer.from(entry.replace(/^modulus=|^0x/, ''), 'hex')),
  },
} as const satisfies Record<string, Form>;

export type EntryForm = keyof typeof FORMS;

/** More are imported in several files: all entries of a file are one transaction. */
const MAX_ENTRIES = 1_000_000;

/** Throws a Problem that names the first entry that is none. */
export function readBlocklist(text: string): Blocklist {
  const counts = { spki_sha256: 0, debian: 0, modulus: 0 };
  const fingerprints = new Set<string>();
  for (const [index, line] of text.split('\n').entries()) {
    const entry = line.replace(/#.*$/, '').trim().toLowerCase();
    if (entry === '') continue;
    const name = (Object.keys(FORMS) as EntryForm[]).find((one) => FORMS[one].pattern.test(entry));
    if (name === undefined) {
      throw new Problem(
        EXIT.usage,
        `line ${index + 1} is no entry of a blocklist`,
        'Write per line the SHA-256 of a public key (SPKI) in hex, the 20 hex digits of Debian’s openssl-blacklist, or an RSA modulus in hex; # begins a comment.',
      );
    }
    fingerprints.add(FORMS[name].fingerprint(entry));
    counts[name] += 1;
    if (fingerprints.size > MAX_ENTRIES) {
      throw new Problem(EXIT.usage, `the file has more than ${MAX_ENTRIES} entries`, 'Split it, and import the parts.');
    }
  }
  return { fingerprints: [...fingerprints], counts };
}
