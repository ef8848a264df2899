// Revokes a certificate on request of an ACME client (RFC 8555, 7.6): of the account that ordered it, of an account that has
// proven control of all of its names, or of the holder of its key. A key that signs the report of its own compromise is
// proven to be known: it is blocked for all accounts, and everything on it is revoked.
import { acmeActor, type BoundAccount } from '../../domain/acme/account.ts';
import { mayOrder } from '../../domain/acme/binding.ts';
import type { CertId } from '../../domain/acme/cert-id.ts';
import { AcmeProblem, malformed, unauthorized } from '../../domain/acme/problem.ts';
import type { IssuedCertificate, RevocationReason } from '../../domain/certificate/certificate.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import { provenNames } from '../validation/proven-names.ts';
import type { KeySigned } from './authenticate-request.ts';
import { findCertificate } from './find-certificate.ts';
import type { AcmeOrderTools } from './tools.ts';

/** Who signed the request. */
type Revoker = { readonly bound: BoundAccount } | ({ readonly key: PublicKey } & Pick<KeySigned, 'spendNonce'>);

interface AcmeRevocation {
  /** DER. */
  readonly certificate: Uint8Array;
  readonly reason: RevocationReason | undefined;
  readonly requestId: string | null;
}

export type RevokeByAcme = (revoker: Revoker, request: AcmeRevocation) => Promise<void>;

interface RevokeTools extends AcmeOrderTools {
  /** Undefined for bytes that are no certificate with both. */
  readonly readCertId: (certificate: Uint8Array) => CertId | undefined;
}

export function revokeByAcme(tools: RevokeTools): RevokeByAcme {
  const { find } = findCertificate(tools);
  return async (revoker, { certificate: der, reason, requestId }) => {
    const certId = tools.readCertId(der);
    if (!certId) throw malformed('certificate is no DER certificate.', 'certificate 不是 DER 编码的证书。');
    const certificate = await find(certId);
    // Whether the bytes are those that were issued is seen by all, so it is no secret which is wrong.
    if (!certificate || Buffer.compare(certificate.der, der) !== 0) throw unknown();
    const by = await rightToRevoke(tools, revoker, certificate);
    if (!by) throw notYours();
    // It would block the key, and revoke what else is on it: who has a name knows nothing about the key.
    if (by === 'names' && reason === 'key_compromise') throw notKnown();
    if ('key' in revoker) await revoker.spendNonce(tools.store);
    const { revocation, accountId, id, publicKey } = certificate;
    const isStricter = reason === 'key_compromise' && revocation?.reason !== 'key_compromise';
    const isRevoked = Boolean(revocation?.revokedAt) && !isStricter;
    const actor = 'bound' in revoker ? acmeActor(revoker.bound, requestId).actor : 'acme:certificate-key';
    if (!isRevoked) await tools.revoke({ accountId, actor, requestId }, id, { reason });
    // Also if the certificate was revoked before: its account's report counts there alone, or a process died right here.
    if (by === 'key' && reason === 'key_compromise') await tools.revokeKey(publicKey.fingerprint);
    if (isRevoked) throw alreadyRevoked();
  };
}

/** By what the revoker may: having ordered it, the key of the certificate, or proofs of its names; null if it may not. */
async function rightToRevoke(
  tools: RevokeTools,
  revoker: Revoker,
  certificate: IssuedCertificate,
): Promise<'order' | 'key' | 'names' | null> {
  if ('key' in revoker) return revoker.key.fingerprint === certificate.publicKey.fingerprint ? 'key' : null;
  const { account, binding } = revoker.bound;
  const { store, now, products } = tools;
  const { accountId, id, orderId, names } = certificate;
  const acme = await store.acmeOrders.findByCertificate(accountId, id);
  if (acme?.acmeAccountId === account.id) return 'order';
  const order = await store.orders.find(accountId, orderId);
  const product = order && products.get(order.productId);
  if (!product || names.length === 0 || mayOrder({ ...binding, products: null }, product.id, names)) return null;
  const proofs = await provenNames(tools, store, { accountId: account.accountId, names, product, now: now() });
  return names.every((name) => proofs.has(name)) ? 'names' : null;
}

const unknown = (): AcmeProblem =>
  new AcmeProblem('notFound', {
    en: 'This service has not issued that certificate.',
    zh: '该证书不是由本服务签发的。',
  });
const notYours = (): AcmeProblem =>
  unauthorized(
    'Neither did this account order the certificate, nor has it valid authorizations for all of its names. Sign with the account that ordered it, or with the key of the certificate.',
    '该账户既未订购该证书，也没有其全部名称的有效授权。请使用订购该证书的账户或证书密钥签名。',
  );
const notKnown = (): AcmeProblem =>
  new AcmeProblem('badRevocationReason', {
    en: 'Only the account that ordered the certificate, or its key, reports that the key is compromised. Sign with that key, or give another reason.',
    zh: '只有订购该证书的账户或证书密钥本身可以报告密钥泄露。请使用该密钥签名，或改用其他原因。',
  });
const alreadyRevoked = (): AcmeProblem =>
  new AcmeProblem('alreadyRevoked', { en: 'The certificate is revoked already.', zh: '该证书已被吊销。' });
