// Orders to reissue: placed by an operator who vouches for the names, with a test key.
import { X509Certificate } from 'node:crypto';
import type { SignHash } from '../../src/domain/certificate/sign-hash.ts';
import type { SubjectFields } from '../../src/domain/certificate/subject.ts';
import type { Answer, Key, TestApp } from './app.ts';
import { csr, type KeyKind, keyPair, pem } from './csr.ts';

export interface OrderRequest {
  readonly product?: string;
  readonly commonName?: string;
  readonly dnsNames?: readonly string[];
  readonly key?: KeyKind;
  readonly signHash?: SignHash;
  readonly vouches?: boolean;
  readonly subject?: SubjectFields;
}

export interface PlacedOrder {
  readonly key: Key;
  readonly id: string;
  readonly certificateId: string;
}

export const csrFor = (kind: KeyKind = 'p256'): string => pem(csr({ key: keyPair(kind) }));

export async function newOrder(app: TestApp, request: OrderRequest = {}, key?: Key): Promise<PlacedOrder> {
  const owner = key ?? (await app.newKey());
  const { commonName = 'www.example.com', dnsNames, vouches = true } = request;
  const { orderId, certificateId } = await app.issuance.placeOrder({
    accountId: owner.accountId,
    productId: request.product ?? 'ssl-dv',
    alternativeId: null,
    actor: 'cli',
    vouchesForNames: vouches,
    ...(request.subject && { subject: request.subject }),
    request: {
      commonName,
      dnsNames,
      csr: csrFor(request.key),
      keySource: 'caller',
      signHash: request.signHash ?? 'sha256',
      keepsEncryptionKey: false,
    },
  });
  return { key: owner, id: orderId, certificateId };
}

/** A valid body for a reissue of such an order. */
export const body = (certificate: Record<string, unknown> = {}, top: Record<string, unknown> = {}) => ({
  certificate: { csr: csrFor(), common_name: 'www.example.com', sign_hash: 'sha256', ...certificate },
  ...top,
});

export const reissue = (app: TestApp, order: PlacedOrder, json: unknown, query = '', headers = {}): Promise<Answer> =>
  app.call('POST', `/openapi/v3/orders/${order.id}/reissue${query}`, { key: order.key, json, headers });

export const show = async (app: TestApp, order: PlacedOrder) =>
  (await app.call('GET', `/openapi/v3/orders/${order.id}`, { key: order.key })).body.data;

export const certificate = async (app: TestApp, { key }: PlacedOrder, id: string) =>
  (await app.call('GET', `/openapi/v3/certs/${id}`, { key })).body.data.Certificate;

/** The SubjectPublicKeyInfo of a certificate, in DER. */
export const spkiIn = ({ pem: text }: { readonly pem: string }): Uint8Array =>
  new Uint8Array(new X509Certificate(text).publicKey.export({ format: 'der', type: 'spki' }));
