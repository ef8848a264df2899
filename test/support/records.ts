// Records to store: plain ones that a test changes where it matters, and full ones with something odd in every column.
import type { Issuer } from '../../src/domain/certificate/authority.ts';
import type { CertificateRecord, Order, Preparation, Revocation } from '../../src/domain/certificate/order.ts';

export const NOW = Date.UTC(2026, 10, 15);
export const ODD = `O'Brien "证书" \\ ; -- 🔒 %_\n\t$1 ?`;
export const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

export const issuer = (id: string, change: Partial<Issuer> = {}): Issuer => ({
  ...{ id, role: 'root', keyType: 'p256', state: 'active', parentId: null, createdAt: NOW },
  certificate: Buffer.from(`certificate of ${id}`),
  privateKey: Buffer.from(`private key of ${id}`),
  ...change,
});
export const pairOf = (name: string, change: Partial<Issuer> = {}): [Issuer, Issuer] => [
  issuer(`${name}-root`, change),
  issuer(`${name}-issuing`, { role: 'issuing', parentId: `${name}-root`, ...change }),
];

export const order = (id: string, change: Partial<Order> = {}): Order => ({
  ...{ id, accountId: 'a', productId: 'ssl-dv', alternativeId: null, status: 'issued' },
  ...{ commonName: null, names: [], dcvMethod: null, dcvScope: 'fqdn', persistUntil: null, persistPolicy: 'fqdn' },
  ...{ currentCertificateId: null, pendingCertificateId: null, termEndsAt: NOW + 1, createdAt: NOW, revision: 1 },
  ...change,
});
/** No column of it is null or plain. */
export const FULL_ORDER = order('full', {
  ...{ productId: ODD, alternativeId: ODD, status: 'domain_verifing', commonName: ODD, names: [ODD, '*.example.com'] },
  ...{ dcvMethod: 'dns-persist', dcvScope: 'base_domain', persistUntil: 2 ** 40, persistPolicy: 'wildcard' },
  ...{ currentCertificateId: 'current', pendingCertificateId: 'pending' },
  ...{ termEndsAt: 2 ** 52, createdAt: 2 ** 52 - 1, revision: 2 ** 40 },
});

export const preparation = (serial: string, change: Partial<Preparation> = {}): Preparation => ({
  ...{ issuerId: 'x-issuing', serial, notBefore: NOW, notAfter: NOW + 100 },
  ...{ toBeSigned: EVERY_BYTE, preparedAt: NOW, leaseEndsAt: NOW + 10 },
  ...change,
});
export const certificate = (id: string, change: Partial<CertificateRecord> = {}): CertificateRecord => ({
  ...{ id, orderId: 'o', accountId: 'a', state: 'pending', createdAt: NOW, pendingSince: null },
  ...{ commonName: null, names: [], csr: null, signHash: 'sha256', validityDays: null, customExpirationDate: null },
  ...{ willRevoke: [], preparation: null, der: null, issuedAt: null, version: null, replacesId: null },
  publicKey: { type: 'p256', bits: 256, spki: Buffer.alloc(0), fingerprint: 'f' },
  revocation: null,
  ...{ cloudKeyId: null, keepsEncryptionKey: false, encryption: null },
  ...change,
});
export const prepared = (id: string, change: Partial<CertificateRecord> = {}): CertificateRecord =>
  certificate(id, { state: 'prepared', preparation: preparation(`serial of ${id}`), ...change });
export const issued = (id: string, change: Partial<CertificateRecord> = {}): CertificateRecord =>
  certificate(id, {
    ...{ state: 'issued', der: EVERY_BYTE, issuedAt: NOW },
    preparation: preparation(`serial of ${id}`, { toBeSigned: null }),
    ...change,
  });
export const revocation = (change: Partial<Revocation> = {}): Revocation => ({
  ...{ reason: 'superseded', cause: 'name_removed', causedById: null, dueAt: NOW + 1, revokedAt: null },
  ...change,
});
