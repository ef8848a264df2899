// A token as the signer process uses it: opened once, with a session for each signature at a time. It makes no attempt to
// recover: after a loss the process ends, and a new one initializes the module again, which is what most modules need.
import { bitString, integer, NULL, oid, sequence } from '../der/writer.ts';
import { ATTRIBUTE, type Attribute, CLASS, type Cryptoki, CryptokiError, loadCryptoki, MECHANISM } from './cryptoki.ts';
import {
  type Act,
  type Failure,
  type FailureKind,
  type KeyFacts,
  type Opening,
  type Request,
  SESSIONS,
  type TokenKeyType,
} from './protocol.ts';

type KeyName = Act['key'];
type Carried =
  | { readonly kind: 'signature'; readonly signature: string }
  | { readonly kind: 'key'; readonly key: KeyFacts };

/** With a reason for the operator. */
class TokenFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, text: string) {
    super(text);
    this.kind = kind;
  }
}

export interface OpenToken {
  perform(request: Request): Promise<Carried>;
}

const CURVES = { p256: oid('1.2.840.10045.3.1.7'), p384: oid('1.3.132.0.34') } as const;
const EC_PUBLIC_KEY = oid('1.2.840.10045.2.1');
const RSA_ENCRYPTION = oid('1.2.840.113549.1.1.1');
const RSA_BITS = 3072;
const EXPONENT = Uint8Array.of(1, 0, 1);
/** Uncompressed. */
const POINT_BYTES = { p256: 65, p384: 97 } as const;

export async function openToken(
  { module, token, serial, pin, isWritable }: Opening,
  load: (module: string) => Promise<Cryptoki> = loadCryptoki,
): Promise<OpenToken> {
  const cryptoki = await load(module);
  const isWanted = (one: { label: string; serial: string }) =>
    (token === null || one.label === token) && (serial === null || one.serial === serial);
  const [found, another] = (await cryptoki.tokens()).filter(isWanted);
  if (!found) throw new TokenFailure('token', 'the module has no such token');
  if (another) throw new TokenFailure('token', 'the module has several tokens of that name; add serial=');
  if (found.isLocked) throw new TokenFailure('pin', 'the PIN of the token is locked');
  if (found.isAtFinalTry) {
    throw new TokenFailure('pin', 'the next wrong PIN would lock the token; log in once with another tool');
  }
  const sessions: number[] = [];
  while (sessions.length < SESSIONS) sessions.push(await cryptoki.openSession(found.slot, isWritable));
  // For all sessions of this process.
  await cryptoki.login(sessions[0] ?? 0, pin);
  const handles = new Map<string, number>();
  const isThere = async () => (await cryptoki.tokens()).some(isWanted);

  async function handleOf(session: number, name: KeyName): Promise<number> {
    const known = handles.get(JSON.stringify(name));
    if (known !== undefined) return known;
    const [key, second] = await cryptoki.find(session, template(name, CLASS.private));
    if (key === undefined) {
      throw (await isThere()) ? new TokenFailure('key', 'the token has no such key') : lost();
    }
    if (second !== undefined) throw new TokenFailure('key', 'the token has several keys of that name; add id=');
    handles.set(JSON.stringify(name), key);
    return key;
  }

  async function act(session: number, request: Request): Promise<Carried> {
    if (request.act === 'sign') {
      const { key, keyType, data } = request;
      const mechanism = keyType === 'rsa' ? MECHANISM.rsa : MECHANISM.ecdsa;
      const bytes = Buffer.from(data, 'hex');
      const signature = await cryptoki.sign(session, mechanism, await handleOf(session, key), bytes);
      return { kind: 'signature', signature: signature.toString('hex') };
    }
    if (request.act === 'generate') await generate(cryptoki, session, request);
    return { kind: 'key', key: await factsOf(cryptoki, session, await handleOf(session, request.key), request.key) };
  }

  return {
    async perform(request) {
      // The service sends no more at once than there are sessions.
      const session = sessions.pop();
      if (session === undefined) throw new TokenFailure('module', 'all sessions are in use');
      try {
        return await act(session, request);
      } finally {
        sessions.push(session);
      }
    },
  };
}

const lost = () => new TokenFailure('token', 'the token is gone');

const template = ({ object, id }: KeyName, objectClass: number): Attribute[] => [
  { type: ATTRIBUTE.class, value: objectClass },
  ...named({ object, id }),
];

const named = ({ object, id }: KeyName): Attribute[] => [
  ...(object === null ? [] : [{ type: ATTRIBUTE.label, value: Buffer.from(object, 'utf8') }]),
  ...(id === null ? [] : [{ type: ATTRIBUTE.id, value: Buffer.from(id, 'hex') }]),
];

/** A key that cannot leave the token, nor be read in it. */
async function generate(
  cryptoki: Cryptoki,
  session: number,
  { key, keyType }: { readonly key: KeyName; readonly keyType: TokenKeyType },
): Promise<void> {
  const existing = await cryptoki.find(session, template(key, CLASS.private));
  if (existing.length > 0) throw new TokenFailure('key', 'the token has a key of that name already');
  const yes = (type: number): Attribute => ({ type, value: true });
  const parameters: Attribute[] =
    keyType === 'rsa'
      ? [
          { type: ATTRIBUTE.modulusBits, value: RSA_BITS },
          { type: ATTRIBUTE.publicExponent, value: EXPONENT },
        ]
      : [{ type: ATTRIBUTE.ecParams, value: CURVES[keyType] }];
  const mechanism = keyType === 'rsa' ? MECHANISM.rsaKeyPair : MECHANISM.ecKeyPair;
  await cryptoki.generate(session, mechanism, {
    public: [...named(key), yes(ATTRIBUTE.token), yes(ATTRIBUTE.verify), ...parameters],
    private: [
      ...[...named(key), yes(ATTRIBUTE.token), yes(ATTRIBUTE.private), yes(ATTRIBUTE.sensitive), yes(ATTRIBUTE.sign)],
      { type: ATTRIBUTE.extractable, value: false },
    ],
  });
}

async function factsOf(cryptoki: Cryptoki, session: number, handle: number, name: KeyName): Promise<KeyFacts> {
  const read = (object: number, type: number) => cryptoki.read(session, object, type);
  const isExtractable = (await read(handle, ATTRIBUTE.extractable))?.[0] !== 0;
  const curve = await read(handle, ATTRIBUTE.ecParams);
  const keyType = curve ? curveOf(curve) : 'rsa';
  const [publicKey] = await cryptoki.find(session, template(name, CLASS.public));
  if (keyType === 'rsa') {
    const modulus = await read(handle, ATTRIBUTE.modulus);
    const exponent = await read(handle, ATTRIBUTE.publicExponent);
    if (!modulus) throw new TokenFailure('key', 'the key is neither RSA nor on a curve');
    const key = sequence([integer(modulus), integer(exponent ?? EXPONENT)]);
    return { keyType, isExtractable, spki: spkiOf([RSA_ENCRYPTION, NULL], key) };
  }
  const point = publicKey === undefined ? undefined : await read(publicKey, ATTRIBUTE.ecPoint);
  const parameters = [EC_PUBLIC_KEY, CURVES[keyType]];
  return { keyType, isExtractable, spki: point ? spkiOf(parameters, unwrapped(point, keyType)) : null };
}

const spkiOf = (algorithm: readonly Uint8Array[], key: Uint8Array): string =>
  Buffer.from(sequence([sequence(algorithm), bitString(key)])).toString('hex');

function curveOf(parameters: Uint8Array): 'p256' | 'p384' {
  for (const curve of ['p256', 'p384'] as const) if (Buffer.compare(CURVES[curve], parameters) === 0) return curve;
  throw new TokenFailure('key', 'the key is on another curve than P-256 and P-384');
}

/** PKCS#11 wraps points into an OCTET STRING, of two bytes more; some modules do not. */
const unwrapped = (point: Buffer, keyType: keyof typeof POINT_BYTES): Uint8Array =>
  point.length === POINT_BYTES[keyType] + 2 ? point.subarray(2) : point;

/** Values that concern one request; after any other one nothing of the session can be relied on. */
const OF_THE_KEY: ReadonlySet<string> = new Set(
  [
    ...['KEY_FUNCTION_NOT_PERMITTED', 'KEY_TYPE_INCONSISTENT', 'KEY_SIZE_RANGE', 'MECHANISM_INVALID', 'DATA_LEN_RANGE'],
    ...['ATTRIBUTE_VALUE_INVALID', 'TOKEN_WRITE_PROTECTED', 'SESSION_READ_ONLY'],
  ].map((name) => `CKR_${name}`),
);
const MODULE_FAULTS: ReadonlySet<string> = new Set([
  'CKR_HOST_MEMORY',
  'CKR_ARGUMENTS_BAD',
  'CKR_FUNCTION_NOT_SUPPORTED',
]);

export function failureOf(error: unknown): Failure {
  if (error instanceof TokenFailure) return { kind: error.kind, text: error.message, isUnsigned: true };
  if (!(error instanceof CryptokiError)) {
    return { kind: 'module', text: error instanceof Error ? error.message : String(error), isUnsigned: false };
  }
  const { call, value, message: text } = error;
  return { kind: kindOf(value), text, isUnsigned: call !== 'C_Sign' };
}

function kindOf(value: string): FailureKind {
  if (value.startsWith('CKR_PIN_') || value === 'CKR_USER_PIN_NOT_INITIALIZED') return 'pin';
  if (OF_THE_KEY.has(value)) return 'key';
  return MODULE_FAULTS.has(value) ? 'module' : 'token';
}
