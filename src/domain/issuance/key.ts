// Which public key a reissue certifies, and who signs it with which digest. Reading a CSR and judging how sound a key
// is are handed in; where private keys lie is only ever a word here.

import { KEY_SOURCES, type KeySource, type OfferedKeySource, type Product } from '../catalog/products.ts';
import { canStillSign } from '../certificate/authority.ts';
import type { PublicKey } from '../certificate/public-key.ts';
import { requirePin } from '../cloud-keys/cloud-key.ts';
import { invalid, Refusal } from '../errors.ts';
import type { Issuers, ReissueContext, ReissueRequest } from './request.ts';

const CSR = 'certificate.csr';
const CSR_FROM = 'certificate.csr_from';
const SIGN_HASH = 'certificate.sign_hash';
const DAY_MS = 86_400_000;
const HOUR_SECONDS = 3_600;

/**
 * `csr_from` as callers send it. Left out or empty, the caller holds the key; `caller`, our word for that, is none of
 * theirs. A misspelt wish for a cloud-held key must not silently become something else.
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
 * Rule 3: what the product says about the source of the key and about the CSR. A CSR speaks for a key of the caller; for
 * a cloud-held one it is ignored, and the access code is needed (rule 7).
 */
export function requireKeyAsOffered(request: ReissueRequest, { product }: ReissueContext): OfferedKeySource {
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
  if (product.csr === 'required' && !request.csr) {
    throw invalid(CSR, 'This product needs a csr with every reissue.', '该产品每次重签都需要发送 csr。');
  }
  if (product.csr === 'forbidden' && request.csr) {
    throw invalid(
      CSR,
      'A reissue of this product keeps its key. Leave csr out.',
      '该产品重签时保留原密钥，请不发送 csr。',
    );
  }
  return source;
}

/** The digest alone, before the key is known: what no key of the product can have is cheap to refuse. */
export function requireSignHashOffered(request: ReissueRequest, { product, issuers }: ReissueContext): void {
  if (!product.signHashes.some((offered) => offered === request.signHash)) throw notServed(product, issuers);
}

/** How a key is come by. A source that products may offer and that has no row here does not compile. */
const KEY_FROM: Record<OfferedKeySource, (request: ReissueRequest, context: ReissueContext) => PublicKey> = {
  caller: (request, { readCsr, current }) => (request.csr ? readCsr(request.csr) : current.publicKey),
  'sign-cloud-csc': (_request, { cloudKey }) => cloudKey,
};

export function keyAndIssuer(source: OfferedKeySource, request: ReissueRequest, context: ReissueContext) {
  const { now, order, product, issuers, requireAcceptedKey } = context;
  const publicKey = KEY_FROM[source](request, context);
  requireAcceptable(publicKey, product);
  requireAcceptedKey(publicKey);
  // As long as the certificate might live; if nobody lives that long, it is shortened.
  const until = Math.min(now + product.maxValidityDays * DAY_MS, order.termEndsAt);
  const issuer = issuers.choose(publicKey.type, request.signHash, until);
  if (issuer === undefined) throw notServed(product, issuers, publicKey);
  if (!canStillSign(issuer, now)) throw nobodyLeft();
  return { publicKey, issuer };
}

function requireAcceptable({ type, bits }: PublicKey, { keys, trust }: Product): void {
  // Under public rules the modulus is a whole number of bytes.
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

/** Never another digest than asked: the list says what can be had instead. */
function notServed({ keys, signHashes }: Product, { served }: Issuers, key?: PublicKey): Refusal {
  const possible = served.filter(
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

/** Nothing of the product can be signed: what it needs is not there since the start. */
const switchedOff = (): Refusal =>
  new Refusal('service_busy', {
    reason: {
      en: 'Nothing of this product can be issued at the moment: the cryptography it needs did not pass its test at start-up. The operator sees why with `reseal doctor`.',
      zh: '该产品目前无法签发：其所需的密码算法未通过启动自检。请联系运营方运行 `reseal doctor` 查看原因。',
    },
    retryAfterSeconds: HOUR_SECONDS,
  });

/** The request is in order and will be served as it is, once the operator has seen to it. */
const nobodyLeft = (): Refusal =>
  new Refusal('service_busy', {
    reason: {
      en: 'Every issuer for this key and digest has reached its end. The operator brings a new one with `reseal ca import`; then send the same request again.',
      zh: '可用于此密钥与摘要组合的签发者均已到期。请联系运营方使用 `reseal ca import` 导入新的签发者，之后重新发送相同请求即可。',
    },
    retryAfterSeconds: HOUR_SECONDS,
  });
