// JSON Web Signatures as ACME sends them (RFC 8555, 6.2): the flattened JSON serialization, in its one canonical encoding.
// Whatever two parsers may read differently is refused: unprotected headers, critical extensions, repeated keys, padding,
// stray bits of base64url. Keys and signatures are checked elsewhere (ports.ts).
import { Refusal } from '../errors.ts';
import { repeatedKey } from '../strict-json.ts';
import { type Jwk, parseJwk, SIGNATURE_ALGORITHMS, type SignatureAlgorithm } from './jwk.ts';
import { AcmeProblem, malformed } from './problem.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export interface Jws {
  readonly header: JsonObject;
  /** What the signature covers. */
  readonly signingInput: string;
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
}

export const MAC_ALGORITHMS = ['HS256', 'HS384', 'HS512'] as const;
export type MacAlgorithm = (typeof MAC_ALGORITHMS)[number];

const MEMBERS: ReadonlySet<string> = new Set(['protected', 'payload', 'signature']);
/** An RSA key of 4096 bits takes 700 characters. */
const MAX_HEADER = 8_192;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The JSON object of a request body, or of a payload. */
export function parseObject(text: string, what: string): JsonObject {
  const value = isSingleKeyed(text) ? parsed(text) : undefined;
  if (isObject(value)) return value;
  throw malformed(
    `The ${what} must be one JSON object in UTF-8, in which no key occurs twice.`,
    `${what} 必须是一个 UTF-8 编码的 JSON 对象，且键不得重复。`,
  );
}

/** Of a request that is no POST-as-GET. */
export function requireObject(payload: JsonObject | 'post-as-get'): JsonObject {
  if (payload !== 'post-as-get') return payload;
  throw malformed('The payload is empty. Send a JSON object.', 'payload 为空，请发送 JSON 对象。');
}

export function requirePostAsGet(payload: JsonObject | 'post-as-get'): void {
  if (payload === 'post-as-get') return;
  throw malformed(
    'This resource is only read: send an empty payload (POST-as-GET).',
    '该资源只可读取，请发送空的 payload（POST-as-GET）。',
  );
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function parseJws(value: unknown, what = 'JWS'): Jws {
  if (!isObject(value)) throw notFlattened(what);
  const { protected: header, payload, signature } = value;
  const isWhole = [header, payload, signature].every((part) => typeof part === 'string');
  if (!isWhole || Object.keys(value).some((key) => !MEMBERS.has(key))) throw notFlattened(what);
  const [headerText, payloadText] = [header as string, payload as string];
  if (headerText.length > MAX_HEADER) {
    throw malformed(`The protected header of the ${what} is too long.`, `${what} 的 protected 头过长。`);
  }
  const members = parseObject(textOf(bytesOf(headerText, what)), `protected header of the ${what}`);
  for (const extension of ['crit', 'b64']) {
    if (Object.hasOwn(members, extension)) {
      throw malformed(
        `The protected header of the ${what} has ${extension}; no extension of JWS is supported.`,
        `${what} 的 protected 头含有 ${extension}：不支持 JWS 扩展。`,
      );
    }
  }
  return {
    header: members,
    signingInput: `${headerText}.${payloadText}`,
    payload: bytesOf(payloadText, what),
    signature: bytesOf(signature as string, what),
  };
}

/** Who signed a request: a new key that it brings along, or that of an account, by its URL. */
export type Signer = { readonly jwk: Jwk } | { readonly kid: string };

export interface RequestHeader {
  readonly alg: SignatureAlgorithm;
  readonly nonce: string;
  readonly url: string;
  readonly signer: Signer;
}

/** The header of a request. Every member is required, and of `jwk` and `kid` exactly one. */
export function requestHeader({ header }: Jws): RequestHeader {
  const { nonce } = header;
  if (typeof nonce !== 'string') {
    throw new AcmeProblem('badNonce', {
      en: 'The protected header has no nonce. Send the Replay-Nonce of this answer.',
      zh: 'protected 头缺少 nonce，请使用本响应的 Replay-Nonce。',
    });
  }
  return { alg: algorithmIn(header), nonce, url: urlIn(header), signer: signerIn(header) };
}

/** The header of the inner JWS of a key change (RFC 8555, 7.3.5): a key, and no nonce. */
export function innerHeader({ header }: Jws): { readonly alg: SignatureAlgorithm; readonly url: string; jwk: Jwk } {
  refuseNonce(header, 'inner JWS');
  const signer = signerIn(header);
  if (!('jwk' in signer)) {
    throw malformed('The inner JWS must carry the new key as jwk.', '内层 JWS 必须以 jwk 携带新密钥。');
  }
  return { alg: algorithmIn(header), url: urlIn(header), jwk: signer.jwk };
}

/** The header of an external account binding (RFC 8555, 7.3.4): a MAC, the key id, the URL, and no nonce. */
export function bindingHeader({ header }: Jws): {
  readonly alg: MacAlgorithm;
  readonly url: string;
  readonly kid: string;
} {
  refuseNonce(header, 'externalAccountBinding');
  const alg = MAC_ALGORITHMS.find((known) => known === header.alg);
  if (!alg) throw badAlgorithm(MAC_ALGORITHMS);
  const { kid } = header;
  if (typeof kid !== 'string' || kid === '' || Object.hasOwn(header, 'jwk')) {
    throw malformed(
      'The protected header of externalAccountBinding must have kid, the key id that the operator gave out, and no jwk.',
      'externalAccountBinding 的 protected 头必须包含 kid（运营方提供的密钥 ID），且不得包含 jwk。',
    );
  }
  return { alg, url: urlIn(header), kid };
}

/** A payload as JSON object; `post-as-get` for an empty one. */
export function payloadOf({ payload }: Pick<Jws, 'payload'>): JsonObject | 'post-as-get' {
  return payload.length === 0 ? 'post-as-get' : parseObject(textOf(payload), 'payload');
}

function algorithmIn({ alg }: JsonObject): SignatureAlgorithm {
  const known = SIGNATURE_ALGORITHMS.find((one) => one === alg);
  if (known) return known;
  throw badAlgorithm(SIGNATURE_ALGORITHMS);
}

export const badAlgorithm = (algorithms: readonly string[]): AcmeProblem =>
  new AcmeProblem(
    'badSignatureAlgorithm',
    {
      en: `The algorithm of the JWS does not fit: use ${algorithms.join(', ')}.`,
      zh: `JWS 的签名算法不适用，请使用：${algorithms.join('、')}。`,
    },
    { algorithms },
  );

function urlIn({ url }: JsonObject): string {
  if (typeof url === 'string') return url;
  throw malformed('The protected header has no url.', 'protected 头缺少 url。');
}

function signerIn(header: JsonObject): Signer {
  const [hasJwk, hasKid] = [Object.hasOwn(header, 'jwk'), Object.hasOwn(header, 'kid')];
  const { jwk, kid } = header;
  if (hasJwk && !hasKid) return { jwk: parseJwk(jwk) };
  if (hasKid && !hasJwk && typeof kid === 'string') return { kid };
  throw malformed(
    'The protected header must have exactly one of jwk and kid; kid is the URL of the account.',
    'protected 头必须且只能包含 jwk 与 kid 之一；kid 为账户 URL。',
  );
}

function refuseNonce(header: JsonObject, what: string): void {
  if (!Object.hasOwn(header, 'nonce')) return;
  throw malformed(`The protected header of the ${what} must have no nonce.`, `${what} 的 protected 头不得包含 nonce。`);
}

/** Of canonical base64url without padding (RFC 7515, 2). */
export function bytesOf(text: string, what: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64url');
  // Round-trip check: Buffer.from takes padding, other alphabets and stray bits.
  if (bytes.toString('base64url') === text) return bytes;
  throw malformed(
    `A part of the ${what} is not base64url without padding.`,
    `${what} 中有内容不是无填充的 base64url 编码。`,
  );
}

function textOf(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    // No JSON.
    return '';
  }
}

/** False also for what is nested too deep, or has too many parts. */
function isSingleKeyed(text: string): boolean {
  try {
    return repeatedKey(text) === undefined;
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const notFlattened = (what: string): AcmeProblem =>
  malformed(
    `The ${what} must be in the flattened JSON serialization: protected, payload and signature, and nothing else.`,
    `${what} 必须采用扁平 JSON 序列化：只包含 protected、payload 与 signature。`,
  );
