// Reads a CSR (PKCS#10, RFC 2986), sent as PEM (RFC 7468) or as bare base64. Checks that it is well-formed, and signed by
// its own key with a safe algorithm. Only the key is used: names come from the order, so subject and attributes are
// only validated. Key strength is checked in public-key.ts.
import { constants, type KeyObject, verify } from 'node:crypto';
import type { KeyType, PublicKey } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Localized } from '../../kernel/locale.ts';
import { DerError, DerReader } from '../der/reader.ts';
import { explicit, integer, mapKey, NULL, oid, sequence } from '../der/writer.ts';
import { openSm2PublicKey, sm2Verify } from '../sm2/sm2.ts';
import { findSubjectFault } from './csr-subject.ts';
import { describePublicKey, importPublicKey } from './public-key.ts';

export interface Csr {
  readonly der: Uint8Array;
  readonly publicKey: PublicKey;
}

/** Well-formed; neither its signature nor that its key is a point of its curve is checked yet. */
export interface ParsedCsr extends Csr {
  readonly signed: Uint8Array;
  readonly scheme: Scheme;
  readonly signature: Uint8Array;
}

const MAX_CHARACTERS = 32 * 1024;
const LABELS: readonly (string | undefined)[] = ['CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST'];

const NEW_CSR = 'openssl req -new -newkey rsa:3072 -sha256 -nodes -subj /CN=example.com -keyout key.pem -out csr.pem';

const WRONG = {
  tooLong: {
    en: `A certificate signing request has at most ${MAX_CHARACTERS} characters.`,
    zh: `CSR 最多 ${MAX_CHARACTERS} 个字符。`,
  },
  privateKey: {
    en: 'This text holds a private key. Never send one: consider it disclosed, and do not use it again.',
    zh: '内容中含有私钥。切勿发送私钥：请视其为已泄露，不要再使用。',
  },
  pem: {
    en: 'Send exactly one PEM block, from -----BEGIN CERTIFICATE REQUEST----- to -----END CERTIFICATE REQUEST-----, with nothing after it.',
    zh: '请只发送一个 PEM 块，从 -----BEGIN CERTIFICATE REQUEST----- 到 -----END CERTIFICATE REQUEST-----，其后不得有其他内容。',
  },
  escaped: {
    en: 'The text holds a backslash and an n where line breaks belong: it was escaped twice on its way into JSON.',
    zh: '文本中的换行被写成了反斜杠加 n：写入 JSON 时被转义了两次。',
  },
  base64: {
    en: 'The certificate signing request is not valid base64: a character is foreign, or something is missing at its end.',
    zh: 'CSR 不是有效的 base64：含有非法字符，或末尾不完整。',
  },
  form: {
    en: 'The certificate signing request is damaged, or not in the form of RFC 2986 (PKCS#10, DER).',
    zh: 'CSR 已损坏，或不符合 RFC 2986（PKCS#10，DER）的格式。',
  },
  brokenHash: {
    en: 'The certificate signing request is signed with SHA-1 or MD5, which are not safe any more. Use SHA-256.',
    zh: 'CSR 使用 SHA-1 或 MD5 签名，已不再安全，请改用 SHA-256。',
  },
  algorithm: {
    en: 'The certificate signing request must be signed with RSA (PKCS #1 v1.5, or PSS with MGF1 and a salt as long as the hash) or ECDSA, as its key is, and SHA-256, SHA-384 or SHA-512; with Ed25519; or with SM2 and SM3.',
    zh: 'CSR 须使用与其密钥相符的 RSA（PKCS #1 v1.5，或采用 MGF1 且盐长等于哈希长度的 PSS）或 ECDSA 签名，哈希为 SHA-256、SHA-384 或 SHA-512；或使用 Ed25519；或使用 SM2 与 SM3。',
  },
  signature: {
    en: 'The signature of the certificate signing request does not verify with its public key: it was altered, or signed with another key.',
    zh: 'CSR 的签名无法用其公钥验证：内容被改动，或由另一密钥签名。',
  },
  sm2Signature: {
    en: 'The SM2 signature of the certificate signing request does not verify: it was altered, or signed with another id than 1234567812345678. With openssl: -sigopt distid:1234567812345678.',
    zh: 'CSR 的 SM2 签名无法验证：内容被改动，或签名所用的标识不是 1234567812345678。openssl 参数：-sigopt distid:1234567812345678。',
  },
} as const satisfies Record<string, Localized>;

interface Scheme {
  /** Null for one that digests by itself. */
  readonly hash: string | null;
  readonly family: 'rsa' | 'ec' | 'ed25519' | 'sm2';
  /** For PSS only. */
  readonly padding?: { readonly padding: number; readonly saltLength: number };
}

/** By AlgorithmIdentifier with its parameters: any other encoding is refused. */
const SCHEMES: ReadonlyMap<string, Scheme> = new Map<string, Scheme>(
  (
    [
      ['sha256', 32, '2.16.840.1.101.3.4.2.1', '1.2.840.113549.1.1.11', '1.2.840.10045.4.3.2'],
      ['sha384', 48, '2.16.840.1.101.3.4.2.2', '1.2.840.113549.1.1.12', '1.2.840.10045.4.3.3'],
      ['sha512', 64, '2.16.840.1.101.3.4.2.3', '1.2.840.113549.1.1.13', '1.2.840.10045.4.3.4'],
    ] as const
  ).flatMap(([hash, bytes, name, rsa, ec]): [string, Scheme][] => {
    const digest = sequence([oid(name), NULL]);
    const mgf1 = sequence([oid('1.2.840.113549.1.1.8'), digest]);
    const pss = sequence([explicit(0, digest), explicit(1, mgf1), explicit(2, integer(bytes))]);
    const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
    return [
      [mapKey(sequence([oid(rsa), NULL])), { hash, family: 'rsa' }],
      [mapKey(sequence([oid('1.2.840.113549.1.1.10'), pss])), { hash, family: 'rsa', padding }],
      [mapKey(sequence([oid(ec)])), { hash, family: 'ec' }],
    ];
  }),
)
  .set(mapKey(sequence([oid('1.2.156.10197.1.501')])), { hash: 'sm3', family: 'sm2' })
  .set(mapKey(sequence([oid('1.3.101.112')])), { hash: null, family: 'ed25519' });

const FAMILIES: Readonly<Record<KeyType, Scheme['family']>> = {
  rsa: 'rsa',
  p256: 'ec',
  p384: 'ec',
  p521: 'ec',
  ed25519: 'ed25519',
  sm2: 'sm2',
};

/** MD2, MD4, MD5 and SHA-1 with RSA, SHA-1 with RSA (OIW), SHA-1 with ECDSA and with DSA. */
const BROKEN_SCHEMES: ReadonlySet<string> = new Set([
  ...['1.2.840.113549.1.1.2', '1.2.840.113549.1.1.3', '1.2.840.113549.1.1.4', '1.2.840.113549.1.1.5'],
  ...['1.3.14.3.2.29', '1.2.840.10045.4.1', '1.2.840.10040.4.3'],
]);

/** Throws only Refusal('invalid_csr'). */
export const readCsr = (text: string): Csr => verifiedCsr(parseCsr(text));

/** Throws only Refusal('invalid_csr'). Costs next to nothing: what `verifiedCsr` costs depends on the key. */
export function parseCsr(text: string): ParsedCsr {
  const der = bytesOf(text);
  try {
    return parseRequest(der);
  } catch (error) {
    throw error instanceof DerError ? refusal(WRONG.form, error) : error;
  }
}

function refusal(what: Localized, cause?: unknown): Refusal {
  const reason = { en: `${what.en} One way to make a good one: ${NEW_CSR}`, zh: `${what.zh}生成方法示例：${NEW_CSR}` };
  return new Refusal('invalid_csr', { field: 'certificate.csr', reason, cause });
}

/** Throws `invalid_csr` for a text that is neither PEM nor base64. */
export function bytesOf(text: string): Uint8Array {
  if (text.length > MAX_CHARACTERS) throw refusal(WRONG.tooLong);
  if (text.includes('PRIVATE KEY-----')) throw refusal(WRONG.privateKey);
  const base64 = bodyOf(text.trim()).replace(/[ \t\r\n]+/g, '');
  const bytes = Buffer.from(base64, 'base64');
  // The round trip rejects foreign characters, wrong padding and non-zero trailing bits.
  if (base64 === '' || bytes.toString('base64') !== base64) throw refusal(WRONG.base64);
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Text before the block is allowed, as `openssl req -text` prints it; a second block is ambiguous, and refused. */
function bodyOf(text: string): string {
  const [before = '', block, another] = text.split('-----BEGIN ', 3);
  if (block === undefined) return text;
  const [, label, body] = /^([A-Z ]+)-----([^-]*)-----END \1-----$/.exec(block) ?? [];
  const lastLine = before.slice(before.lastIndexOf('\n') + 1);
  if (another !== undefined || body === undefined || lastLine.trim() !== '' || !LABELS.includes(label)) {
    throw refusal(text.includes('\\n') ? WRONG.escaped : WRONG.pem);
  }
  return body;
}

function parseRequest(der: Uint8Array): ParsedCsr {
  const outer = new DerReader(der);
  const request = outer.sequence();
  outer.end();
  const signed = request.any();
  const algorithm = request.any();
  const signature = request.bitString();
  request.end();

  const info = new DerReader(signed).sequence();
  const version = info.integer();
  if (version.length !== 1 || version[0] !== 0) throw new DerError('not version 1');
  const fault = findSubjectFault(info.sequence());
  if (fault) throw refusal(fault);
  const publicKey = describePublicKey(info.any());
  checkAttributes(info.context(0));
  info.end();
  return { der, publicKey, signed, scheme: schemeOf(algorithm), signature };
}

/** Throws only Refusal('invalid_csr'): unless the CSR is signed by its own key with a safe algorithm. */
export function verifiedCsr({ der, publicKey, signed, scheme, signature }: ParsedCsr): Csr {
  const handle = importPublicKey(publicKey);
  if (scheme.family !== FAMILIES[publicKey.type]) throw refusal(WRONG.algorithm);
  // A PSS signature without its leading zeros would still verify: the same CSR would have two encodings.
  const isWhole = publicKey.type !== 'rsa' || signature.length === Math.ceil(publicKey.bits / 8);
  const isGenuine =
    scheme.family === 'sm2'
      ? sm2Verify(openSm2PublicKey(publicKey.spki), signed, signature)
      : isSigned(signed, signature, scheme, handle);
  if (!isWhole || !isGenuine) throw refusal(scheme.family === 'sm2' ? WRONG.sm2Signature : WRONG.signature);
  return { der, publicKey };
}

/** Attributes are validated and ignored. The field is mandatory, even when it is empty. */
function checkAttributes(attributes: DerReader | undefined): void {
  if (!attributes) throw new DerError('attributes are missing');
  while (!attributes.isAtEnd) {
    const attribute = attributes.sequence();
    attribute.oid();
    const values = attribute.set();
    do values.any();
    while (!values.isAtEnd);
    attribute.end();
  }
}

function schemeOf(algorithm: Uint8Array): Scheme {
  const scheme = SCHEMES.get(mapKey(algorithm));
  if (scheme) return scheme;
  throw refusal(BROKEN_SCHEMES.has(new DerReader(algorithm).sequence().oid()) ? WRONG.brokenHash : WRONG.algorithm);
}

function isSigned(signed: Uint8Array, signature: Uint8Array, { hash, padding }: Scheme, key: KeyObject): boolean {
  try {
    // Faster with the key itself than with an options object.
    return verify(hash, signed, padding ? { key, ...padding } : key, signature);
  } catch {
    // OpenSSL throws for signatures that a key of that size cannot have made.
    return false;
  }
}
