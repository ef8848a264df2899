// Wire format of the Cloud Signature Consortium API 1.0.4.0 and 2.0.0.2: parameters, algorithm OIDs, errors. Error
// descriptions begin with the specification's phrase where there is one. Null means absent (7.1). Parameters have one
// meaning in both versions, and both take the names of either: clients send the older ones to the newer path too.
import type { KeyType } from '../../domain/certificate/public-key.ts';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import { type ErrorCode, invalid, Refusal } from '../../domain/errors.ts';
import { Secret } from '../../domain/secret.ts';
import { inLocale, type Locale, type Localized } from '../../kernel/locale.ts';
import { messageOf } from '../front/error-table.ts';
import { TransportRefusal } from '../front/reply.ts';

export const CSC_VERSIONS = ['v1', 'v2'] as const;
export type CscVersion = (typeof CSC_VERSIONS)[number];

export type Body = Readonly<Record<string, unknown>>;

export function bodyOf(body: unknown): Body {
  if (body === undefined) return {};
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Body;
  throw new Refusal('invalid_parameters', {
    reason: { en: 'The body must be a JSON object.', zh: '请求体必须是 JSON 对象。' },
  });
}

/** Parameters that version 1 names otherwise. The older name is read where the newer one is absent. */
const OLDER_NAMES = { hashes: 'hash', hashAlgorithmOID: 'hashAlgo', authData: 'PIN' } as const;
type Renamed = keyof typeof OLDER_NAMES;

const isRenamed = (name: string): name is Renamed => Object.hasOwn(OLDER_NAMES, name);

/** The name that the request uses; the newer one if it uses neither. */
const nameIn = (body: Body, name: Renamed): string =>
  body[name] == null && body[OLDER_NAMES[name]] != null ? OLDER_NAMES[name] : name;

function missingParameter(type: string, name: string): Refusal {
  const older = isRenamed(name)
    ? { en: `, or ${OLDER_NAMES[name]}`, zh: `（或 ${OLDER_NAMES[name]}）` }
    : { en: '', zh: '' };
  return invalid(
    name,
    `Missing (or invalid type) ${type} parameter ${name}${older.en}.`,
    `缺少 ${name}${older.zh}，或其类型不是 ${type}。`,
  );
}
const invalidParameter = (name: string, allowed: string): Refusal =>
  invalid(name, `Invalid parameter ${name}: use ${allowed}.`, `${name} 无效，可选值：${allowed}。`);

export function stringIn(body: Body, name: string): string {
  const value = body[name];
  if (typeof value === 'string' && value !== '') return value;
  throw missingParameter('string', name);
}

export function integerIn(body: Body, name: string): number {
  const value = body[name];
  if (Number.isInteger(value)) return value as number;
  throw missingParameter('integer', name);
}

export function booleanIn(body: Body, name: string): boolean {
  const value = body[name] ?? false;
  if (typeof value === 'boolean') return value;
  throw invalidParameter(name, 'true, false');
}

/** A positive integer, at most `most`, which is also the default. */
export function countIn(body: Body, name: string, most: number): number {
  const value = body[name] ?? most;
  if (Number.isInteger(value) && (value as number) >= 1) return Math.min(value as number, most);
  throw invalidParameter(name, `1 to ${most}`);
}

export function choiceIn<T extends string>(body: Body, name: string, allowed: readonly [T, ...T[]]): T {
  const value = body[name] ?? allowed[0];
  const known = allowed.find((one) => one === value);
  if (known !== undefined) return known;
  throw invalidParameter(name, allowed.join(', '));
}

export function digestsIn(body: Body): Uint8Array[] {
  const name = nameIn(body, 'hashes');
  const hashes = body[name];
  if (!Array.isArray(hashes)) throw missingParameter('array', name);
  return hashes.map((one) => {
    const bytes = Buffer.from(typeof one === 'string' ? one : '', 'base64');
    // Round-trip check: Buffer.from ignores invalid characters and wrong padding.
    if (bytes.length > 0 && bytes.toString('base64') === one) return bytes;
    throw invalid(name, 'Invalid Base64 hash string parameter.', `${name} 中含有无效的 Base64 摘要。`);
  });
}

/** Id of the only authentication object of a credential. Version 1 has a parameter of that name instead. */
export const PIN = OLDER_NAMES.authData;

export function pinIn(body: Body): Secret {
  if (nameIn(body, 'authData') === PIN) return new Secret(stringIn(body, PIN));
  const { authData } = body;
  if (!Array.isArray(authData)) throw missingParameter('array', 'authData');
  const values = authData.filter((one) => one?.id === PIN).map(({ value }) => value);
  if (values.length === 1 && typeof values[0] === 'string' && values[0] !== '') return new Secret(values[0]);
  throw invalid(
    'authData',
    `Invalid parameter authData: it has one object with the id ${PIN}, and its value is the access code.`,
    `authData 无效：须包含一个 id 为 ${PIN} 的对象，其 value 为访问控制码。`,
  );
}

const HASHES: ReadonlyMap<string, SignHash> = new Map([
  ['2.16.840.1.101.3.4.2.1', 'sha256'],
  ['2.16.840.1.101.3.4.2.2', 'sha384'],
  ['2.16.840.1.101.3.4.2.3', 'sha512'],
  ['1.2.156.10197.1.401', 'sm3'],
]);

export const HASH_OIDS = [...HASHES.keys()];

/** Signature algorithm OIDs with their hash; null if the request names the hash separately. */
type Algorithms = ReadonlyMap<string, SignHash | null>;
const ECDSA: Algorithms = new Map([
  ['1.2.840.10045.4.3.2', 'sha256'],
  ['1.2.840.10045.4.3.3', 'sha384'],
  ['1.2.840.10045.4.3.4', 'sha512'],
]);
const SIGNATURES: Readonly<Record<KeyType, Algorithms>> = {
  rsa: new Map([
    ['1.2.840.113549.1.1.1', null],
    ['1.2.840.113549.1.1.11', 'sha256'],
    ['1.2.840.113549.1.1.12', 'sha384'],
    ['1.2.840.113549.1.1.13', 'sha512'],
  ]),
  p256: ECDSA,
  p384: ECDSA,
  p521: ECDSA,
  // The service makes no such keys: they sign messages, not digests.
  ed25519: new Map(),
  sm2: new Map([['1.2.156.10197.1.501', 'sm3']]),
};

export const CURVES: Readonly<Partial<Record<KeyType, string>>> = {
  p256: '1.2.840.10045.3.1.7',
  p384: '1.3.132.0.34',
  p521: '1.3.132.0.35',
  sm2: '1.2.156.10197.1.301',
};

export const algorithmsOf = (type: KeyType): string[] => [...SIGNATURES[type].keys()];
export const ALL_ALGORITHMS: readonly string[] = [
  ...new Set(Object.values(SIGNATURES).flatMap((algorithms) => [...algorithms.keys()])),
];

function hashIn(body: Body): SignHash {
  const name = nameIn(body, 'hashAlgorithmOID');
  const known = HASHES.get(stringIn(body, name));
  if (known) return known;
  throw invalidParameter(name, [...HASHES.keys()].join(', '));
}

/** Undefined if the request has the form of version 1, whose authorizations name no algorithm, and names none. */
export function authorizedHashIn(body: Body): SignHash | undefined {
  const name = nameIn(body, 'hashAlgorithmOID');
  return body[name] == null && nameIn(body, 'hashes') === OLDER_NAMES.hashes ? undefined : hashIn(body);
}

/** hashAlgorithmOID is read only if signAlgo does not imply the hash (11.10). */
export function signHashIn(body: Body, type: KeyType): SignHash {
  const implied = SIGNATURES[type].get(stringIn(body, 'signAlgo'));
  if (implied === undefined) throw invalidParameter('signAlgo', algorithmsOf(type).join(', '));
  return implied ?? hashIn(body);
}

interface CscError {
  readonly status: number;
  readonly error: string;
  /** Replaces the general message of the code. */
  readonly description?: Localized;
}

const INVALID: CscError = { status: 400, error: 'invalid_request' };
const BUSY = 'temporarily_unavailable';

/** Statuses and error names of chapters 10 and 11. Codes not listed are INVALID. */
const ERRORS: Readonly<Partial<Record<ErrorCode, CscError>>> = {
  unauthenticated_request: {
    status: 401,
    error: 'invalid_token',
    description: {
      en: 'Authentication failed. Send key id and secret with HTTP Basic or as X-CC-Key-ID and X-CC-Auth-Key, or an access token of auth/login as Bearer.',
      zh: '身份验证失败，请用 HTTP Basic 或 X-CC-Key-ID 与 X-CC-Auth-Key 请求头发送密钥 ID 与密钥，或以 Bearer 发送 auth/login 的访问令牌。',
    },
  },
  api_key_disabled: { status: 401, error: 'expired_token' },
  account_suspended: { status: 403, error: 'access_denied' },
  permission_denied: { status: 403, error: 'unauthorized_client' },
  cloud_key_not_found: {
    ...INVALID,
    description: {
      en: 'Invalid parameter credentialID: the account has no such credential. credentials/list shows all of them.',
      zh: 'credentialID 无效：该账户下没有此凭据，可通过 credentials/list 查看。',
    },
  },
  sign_key_pin_wrong: {
    status: 400,
    error: 'invalid_authentication_data',
    description: {
      en: 'The authentication data is invalid: wrong access code. Several in a row lock the credential, longer each time.',
      zh: '认证数据无效：访问控制码错误。连续多次输错会锁定该凭据，且锁定时间逐次延长。',
    },
  },
  sign_key_locked: {
    ...INVALID,
    description: {
      en: 'Credential locked: until the time in the Retry-After header the right access code is refused too.',
      zh: '凭据已锁定：在 Retry-After 响应头给出的时间之前，正确的访问控制码也会被拒绝。',
    },
  },
  route_not_found: {
    status: 501,
    error: 'invalid_request',
    description: {
      en: 'This method is not implemented. info lists those that are.',
      zh: '未实现此方法，可用方法见 info。',
    },
  },
  request_too_fast: { status: 429, error: BUSY },
  service_busy: { status: 503, error: BUSY },
  service_internal_error: { status: 500, error: 'server_error' },
};

/** Where version 1 has another name for an error. */
const OTHER_ERRORS: Readonly<Record<CscVersion, Readonly<Partial<Record<ErrorCode, string>>>>> = {
  v1: { sign_key_pin_wrong: 'invalid_pin' },
  v2: {},
};

const CHALLENGES = 'Basic realm="csc", charset="UTF-8", Bearer realm="csc"';

export const cscErrorResponse = (version: CscVersion) => (refusal: Refusal, locale: Locale) => {
  const { status, error, description } = ERRORS[refusal.code] ?? INVALID;
  const { reason, retryAfterSeconds } = refusal.facts;
  const isTransport = refusal instanceof TransportRefusal;
  return {
    status: isTransport ? refusal.status : status,
    headers: {
      ...(isTransport && refusal.headers),
      ...(status === 401 && { 'www-authenticate': CHALLENGES }),
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
    },
    body: {
      error: OTHER_ERRORS[version][refusal.code] ?? error,
      error_description: description && !reason ? inLocale(description, locale) : messageOf(refusal, locale),
    },
  };
};
