// What the service and a signer process say to each other: one JSON object per line, requests on standard input, answers on
// a pipe of their own, because a module may print on the standard ones. Lines are short: digests go in, signatures come
// out. Answers are judged as if a stranger had sent them.
import type { Readable } from 'node:stream';
import type { IssuerKeyType } from '../../domain/certificate/authority.ts';
import type { KeyUri } from '../../domain/certificate/key-uri.ts';

export const ANSWER_FD = 3;
/** The public key of RSA-16384 in hexadecimal fits. */
export const MAX_LINE = 16_384;
/** Signatures that a process makes at once, each in a session of its own. */
export const SESSIONS = 4;

export type TokenKeyType = Exclude<IssuerKeyType, 'sm2'>;
type KeyName = Pick<KeyUri, 'object' | 'id'>;

/** The first line. */
export interface Opening {
  readonly module: string;
  readonly token: string | null;
  readonly serial: string | null;
  readonly pin: string;
  /** To make keys. */
  readonly isWritable: boolean;
}

export type Act =
  /** `data`: the digest, or DigestInfo for RSA; hexadecimal. Answers with the signature as PKCS#11 has it. */
  | { readonly act: 'sign'; readonly key: KeyName; readonly keyType: TokenKeyType; readonly data: string }
  /** Answers with the SPKI of the key of that name, `keyType`, and whether it can leave the token. */
  | { readonly act: 'describe'; readonly key: KeyName }
  /** The same of a key that is made. Fails if there is one of that name. */
  | { readonly act: 'generate'; readonly key: KeyName; readonly keyType: TokenKeyType };

export type Request = Act & { readonly id: number };

/**
 * token: it is not there, or was lost, which a new process may find otherwise. pin: asking again would lock the token.
 * key: this request only. module: it cannot be loaded, or failed otherwise.
 */
export const FAILURES = ['token', 'pin', 'key', 'module'] as const;
export type FailureKind = (typeof FAILURES)[number];

export interface Failure {
  readonly kind: FailureKind;
  readonly text: string;
  /** False if a signature may have been made. */
  readonly isUnsigned: boolean;
}

export interface KeyFacts {
  readonly keyType: TokenKeyType;
  /** Hexadecimal; absent if the token has no public key of that name. */
  readonly spki: string | null;
  readonly isExtractable: boolean;
}

export type Answer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'refused'; readonly failure: Failure }
  | { readonly kind: 'signature'; readonly id: number; readonly signature: string }
  | { readonly kind: 'key'; readonly id: number; readonly key: KeyFacts }
  | { readonly kind: 'failed'; readonly id: number; readonly failure: Failure };

const HEX = /^(?:[0-9a-f]{2}){1,4096}$/;
const MAX_TEXT = 200;

/** Undefined for anything that a signer process does not say. */
export function readAnswer(line: string): Answer | undefined {
  let given: Record<string, unknown>;
  try {
    given = Object(JSON.parse(line));
  } catch {
    return undefined;
  }
  const { kind, id, signature, key } = given;
  if (kind === 'ready') return { kind };
  const failure = failureOf(given.failure);
  if (kind === 'refused') return failure && { kind, failure };
  if (typeof id !== 'number' || !Number.isSafeInteger(id)) return undefined;
  if (kind === 'failed') return failure && { kind, id, failure };
  if (kind === 'signature') return isHex(signature) ? { kind, id, signature } : undefined;
  const facts = kind === 'key' ? factsOf(key) : undefined;
  return facts && { kind: 'key', id, key: facts };
}

const isHex = (value: unknown): value is string => typeof value === 'string' && HEX.test(value);

function failureOf(value: unknown): Failure | undefined {
  const { kind, text, isUnsigned } = Object(value) as Partial<Failure>;
  const known = FAILURES.find((one) => one === kind);
  if (!known || typeof text !== 'string') return undefined;
  // Shown to operators: it may not forge lines.
  return { kind: known, text: text.slice(0, MAX_TEXT).replace(/[^\x20-\x7e]/g, '?'), isUnsigned: isUnsigned === true };
}

function factsOf(value: unknown): KeyFacts | undefined {
  const { keyType, spki = null, isExtractable } = Object(value) as Partial<KeyFacts>;
  if (keyType !== 'p256' && keyType !== 'p384' && keyType !== 'rsa') return undefined;
  if (spki !== null && !isHex(spki)) return undefined;
  return { keyType, spki, isExtractable: isExtractable !== false };
}

/** Calls back with each line, and with undefined once for a line that is too long; then it reads no more. */
export function onLines(stream: Readable, receive: (line: string | undefined) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.length <= MAX_LINE) receive(line);
    if (rest.length <= MAX_LINE && lines.every(({ length }) => length <= MAX_LINE)) return;
    stream.pause().removeAllListeners('data');
    rest = '';
    receive(undefined);
  });
}
