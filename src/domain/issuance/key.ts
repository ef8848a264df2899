// Decides which public key is certified, and which issuer signs it with which digest. Reading a CSR and judging a key
// are handed in; private keys are never seen here.

import { DAY_MS } from '../../kernel/durations.ts';
import { KEY_SOURCES, type KeySource, type OfferedKeySource, type Product } from '../catalog/products.ts';
import { maxValidityDays } from '../catalog/public-rules.ts';
import { type ChosenIssuer, canStillSign, purposeOf } from '../certificate/authority.ts';
import { violationOf } from '../certificate/name-constraints.ts';
import type { PublicKey } from '../certificate/public-key.ts';
import type { SignHash } from '../certificate/sign-hash.ts';
import type { SubjectFields } from '../certificate/subject.ts';
import { validityOf } from '../certificate/validity.ts';
import { requirePin } from '../cloud-keys/cloud-key.ts';
import { invalid, Refusal } from '../errors.ts';
import type { CertificateRequest, IssuanceContext, IssuerChoice, NameChanges } from './request.ts';

const CSR = 'certificate.csr';
const CSR_FROM = 'certificate.csr_from';
const SIGN_HASH = 'certificate.sign_hash';
const HOUR_SECONDS = 3_600;

/**
 * Parses `csr_from`. Absent or empty: the caller holds the key; `caller`, our word for that, is not accepted. A misspelt
 * request for a cloud-held key must not silently become something else.
 */
export function keySource(text: string | undefined): KeySource {
  if (!text) return 'caller';
  const named = KEY_SOURCES.find((source) => source === text && source !== 'caller');
  if (named) return named;
  throw invalid(
    CSR_FROM,
    'csr_from is sign-cloud-csc, or left out when you hold the key.',
    'csr_from 只能为 sign-cloud-csc；自行持有私钥时请不发送。',
  );
}

/**
 * Rule 3: the product's rules on the key source and the CSR. A CSR is for a key of the caller; for a cloud-held one it is
 * ignored, and the access code is required (rule 7). The first certificate on a key of the caller always needs a CSR.
 */
export function requireKeyAsOffered(
  request: CertificateRequest,
  { product, previous }: Pick<IssuanceContext, 'product' | 'previous'>,
): OfferedKeySource {
  const source = product.keySources.find((offered) => offered === request.keySource);
  if (source === undefined) {
    throw invalid(
      CSR_FROM,
      `This product does not offer ${request.keySource}. Leave csr_from out and send a csr of your own key.`,
      `该产品不支持 ${request.keySource}，请不发送 csr_from，并发送自有密钥的 csr。`,
    );
  }
  if (source === 'sign-cloud-csc') {
    requirePin(request.pin, request.pinHint);
    return source;
  }
  const rule = previous ? product.csr : 'required';
  if (rule === 'required' && !request.csr) {
    throw invalid(CSR, 'This product needs a csr with every reissue.', '该产品每次重签都需要发送 csr。');
  }
  if (rule === 'forbidden' && request.csr) {
    throw invalid(
      CSR,
      'A reissue of this product keeps its key. Leave csr out.',
      '该产品重签时保留原密钥，请不发送 csr。',
    );
  }
  return source;
}

/** Checks the digest before the key is read: a digest that no key of the product can have is cheap to refuse. */
export function requireSignHashOffered(request: CertificateRequest, { product, issuers }: IssuanceContext): void {
  if (!product.signHashes.some((offered) => offered === request.signHash)) throw notServed(product, issuers);
}

/** Where each key source gets its public key. A source that a product may offer and that has no row does not compile. */
const KEY_FROM: Record<OfferedKeySource, (request: CertificateRequest, context: IssuanceContext) => PublicKey> = {
  caller: (request, { readCsr, previous }) =>
    request.csr || !previous ? readCsr(request.csr ?? '') : previous.publicKey,
  'sign-cloud-csc': (_request, { cloudKey }) => cloudKey,
};

/** The key, its issuer, which must be allowed to certify the names, and the validity, which no issuer may exceed. */
export function keyAndIssuer(
  source: OfferedKeySource,
  request: CertificateRequest,
  context: IssuanceContext,
  names: CertifiedNames,
) {
  const { now, order, product, issuers } = context;
  const { signHash, validityDays, customExpirationDate } = request;
  const publicKey = KEY_FROM[source](request, context);
  requireAcceptable(publicKey, product);
  context.requireAcceptedKey(publicKey);
  const issuer = chooseIssuer(context, publicKey, signHash);
  if (issuer === undefined) throw notServed(product, issuers, publicKey);
  if (!canStillSign(issuer, now)) throw noIssuerLeft();
  requirePermittedNames(issuer, names, order.subject);
  const { termEndsAt } = order;
  const maxDays = maxValidityDays(product, now);
  const validity = validityOf({ now, validityDays, customExpirationDate, maxDays, termEndsAt, issuer });
  return { publicKey, signHash, issuerId: issuer.id, ...validity };
}

/** Prefers an issuer that outlives the longest certificate possible; if there is none, the certificate is shortened. */
export const chooseIssuer = (
  { now, order, product, issuers }: Pick<IssuanceContext, 'now' | 'order' | 'product' | 'issuers'>,
  { type }: PublicKey,
  signHash: SignHash,
): ChosenIssuer | undefined =>
  issuers.choose(
    purposeOf(product),
    type,
    signHash,
    Math.min(now + maxValidityDays(product, now) * DAY_MS, order.termEndsAt),
  );

type CertifiedNames = Pick<NameChanges, 'commonName' | 'names'>;

/** The name that an issuer may not certify, if any. Verifiers would refuse the certificate. */
export const constraintOn = (
  { nameConstraints }: ChosenIssuer,
  { names, commonName }: CertifiedNames,
  subject: SubjectFields | null,
) => violationOf(nameConstraints, { names, holder: names.length === 0 ? commonName : null, subject });

function requirePermittedNames(issuer: ChosenIssuer, names: CertifiedNames, subject: SubjectFields | null): void {
  const violation = constraintOn(issuer, names, subject);
  if (!violation) return;
  const { name, kind, constraint } = violation;
  throw new Refusal('invalid_sans', {
    field: name === names.commonName || names.names.length === 0 ? 'certificate.common_name' : 'certificate.dns_names',
    reason:
      kind === 'permitted'
        ? {
            en: `${name} is outside of what the certificate authority may certify; its name constraints permit ${constraint} only. Ask for names within them.`,
            zh: `${name} 超出证书颁发机构的签发范围，其名称约束仅允许 ${constraint}，请申请约束范围内的名称。`,
          }
        : {
            en: `The name constraints of the certificate authority exclude ${constraint}, and with it ${name}. Leave the name out.`,
            zh: `证书颁发机构的名称约束排除了 ${constraint}，因此不能包含 ${name}，请移除该名称。`,
          },
    details: { name, constraint: `${kind} ${constraint}` },
  });
}

function requireAcceptable({ type, bits }: PublicKey, { keys, trust }: Product): void {
  // Public rules require a modulus of whole bytes.
  const isWhole = trust !== 'public' || type !== 'rsa' || bits % 8 === 0;
  if (isWhole && keys.some((rule) => rule.type === type && bits >= rule.minBits && bits <= rule.maxBits)) return;
  const list = keys.map((rule) => (rule.type === 'rsa' ? `rsa ${rule.minBits}–${rule.maxBits}` : rule.type)).join(', ');
  throw new Refusal('invalid_csr', {
    field: CSR,
    reason: {
      en: `The product does not certify this key (${type}, ${bits} bits). Send a csr with a key of: ${list}.`,
      zh: `该产品不支持此密钥（${type}，${bits} 位），请发送以下类型密钥的 csr：${list}。`,
    },
  });
}

/** Never substitutes another digest: the list says which can be requested instead. */
function notServed(product: Product, { served }: IssuerChoice, key?: PublicKey): Refusal {
  const { keys, signHashes } = product;
  const possible = served(purposeOf(product)).filter(
    ({ keyType, signHash }) => keys.some(({ type }) => type === keyType) && signHashes.some((one) => one === signHash),
  );
  if (possible.length === 0) return switchedOff();
  const list = possible.map(({ keyType, signHash }) => `${keyType}+${signHash}`).join(', ');
  const asked = key ? { en: ` for a key of type ${key.type}`, zh: `（密钥类型 ${key.type}）` } : { en: '', zh: '' };
  return new Refusal('invalid_parameters', {
    field: SIGN_HASH,
    reason: {
      en: `No issuer of this product signs with that digest${asked.en}. Key and digest can be: ${list}.`,
      zh: `该产品没有可使用此摘要算法的签发者${asked.zh}。可用的密钥与摘要组合：${list}。`,
    },
    details: { served: possible.map(({ keyType, signHash }) => ({ key_type: keyType, sign_hash: signHash })) },
  });
}

/** The cryptography the product needs failed its self-check at start-up. */
const switchedOff = (): Refusal =>
  new Refusal('service_busy', {
    reason: {
      en: 'Nothing of this product can be issued at the moment: the cryptography it needs did not pass its test at start-up. The operator sees why with `reseal doctor`.',
      zh: '该产品目前无法签发：其所需的密码算法未通过启动自检。请联系运营方运行 `reseal doctor` 查看原因。',
    },
    retryAfterSeconds: HOUR_SECONDS,
  });

/** The request is valid, and can be repeated unchanged once the operator has imported an issuer. */
const noIssuerLeft = (): Refusal =>
  new Refusal('service_busy', {
    reason: {
      en: 'Every issuer for this key and digest has reached its end. The operator brings a new one with `reseal ca import`; then send the same request again.',
      zh: '可用于此密钥与摘要组合的签发者均已到期。请联系运营方使用 `reseal ca import` 导入新的签发者，之后重新发送相同请求即可。',
    },
    retryAfterSeconds: HOUR_SECONDS,
  });
