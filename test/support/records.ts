// Records to store: plain ones that tests modify, and full ones with an unusual value in every column.
import type { Issuer } from '../../src/domain/certificate/authority.ts';
import type {
  IssuedCertificate,
  PendingCertificate,
  Preparation,
  PreparedCertificate,
  Revocation,
  VoidedCertificate,
} from '../../src/domain/certificate/certificate.ts';
import type { Order } from '../../src/domain/certificate/order.ts';
import type { AccountId, CertificateId } from '../../src/domain/ids.ts';
import type { Repositories, Store } from '../../src/domain/store.ts';

export const NOW = Date.UTC(2026, 10, 15);
export const ODD = `O'Brien "证书" \\ ; -- 🔒 %_\n\t$1 ?`;
export const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

export const issuer = (id: string, change: Partial<Issuer> = {}): Issuer => ({
  ...{ id, role: 'root', keyType: 'p256', purposes: [], policy: null, parentId: null, createdAt: NOW },
  certificate: Buffer.from(`certificate of ${id}`),
  keyPlace: change.privateKey === null ? 'elsewhere' : 'store',
  privateKey: Buffer.from(`private key of ${id}`),
  ...change,
});
export const pairOf = (name: string, change: Partial<Issuer> = {}): [Issuer, Issuer] => [
  issuer(`${name}-root`, change),
  issuer(`${name}-issuing`, { role: 'issuing', parentId: `${name}-root`, purposes: ['public-tls'], ...change }),
];
/** Stores a root and an issuer below it, as a service that makes them does. */
export async function claimPair(
  store: Pick<Store, 'issuers' | 'transaction'>,
  [root, issuing]: [Issuer, Issuer] = pairOf('x'),
): Promise<void> {
  await store.issuers.claimRoot(root);
  const [purpose = 'public-tls'] = issuing.purposes;
  await store.transaction((tx) => tx.issuers.claimSlot(issuing, { purpose, keyType: issuing.keyType }));
}

export const order = (id: string, change: Partial<Order> = {}): Order => ({
  ...{ id, accountId: 'a', productId: 'ssl-dv', alternativeId: null, status: 'issued' },
  ...{
    commonName: null,
    names: [],
    subject: null,
    dcvMethod: null,
    dcvScope: 'fqdn',
    persistUntil: null,
    persistPolicy: 'fqdn',
  },
  ...{ currentCertificateId: null, pendingCertificateId: null, termEndsAt: NOW + 1, createdAt: NOW, revision: 1 },
  ...change,
});
/** Every column is set, to an unusual value. */
export const FULL_ORDER = order('full', {
  ...{ productId: ODD, alternativeId: ODD, status: 'domain_verifing', commonName: ODD, names: [ODD, '*.example.com'] },
  ...{ dcvMethod: 'dns-persist', dcvScope: 'base_domain', persistUntil: 2 ** 40, persistPolicy: 'wildcard' },
  subject: { country: 'DE', organization: ODD, organizationalUnit: ODD },
  ...{ currentCertificateId: 'current', pendingCertificateId: 'pending' },
  ...{ termEndsAt: 2 ** 52, createdAt: 2 ** 52 - 1, revision: 2 ** 40 },
});

export const preparation = (serial: string, change: Partial<Preparation> = {}): Preparation => ({
  ...{ issuerId: 'x-issuing', serial, notBefore: NOW, notAfter: NOW + 100 },
  ...{ preparedAt: NOW, leaseEndsAt: NOW + 10 },
  ...change,
});
const requested = (id: string) => ({
  ...{ id, orderId: 'o', accountId: 'a', createdAt: NOW, pendingSince: null },
  ...{ commonName: null, names: [], csr: null, signHash: 'sha256' as const },
  ...{ validityDays: null, customExpirationDate: null, willRevoke: [] },
  publicKey: { type: 'p256' as const, bits: 256, spki: Buffer.alloc(0), fingerprint: 'f' },
  ...{ cloudKeyId: null, keepsEncryptionKey: false },
});
export const certificate = (id: string, change: Partial<PendingCertificate> = {}): PendingCertificate => ({
  ...{ ...requested(id), state: 'pending' },
  ...change,
});
export const prepared = (id: string, change: Partial<PreparedCertificate> = {}): PreparedCertificate => ({
  ...{ ...requested(id), state: 'prepared', preparation: preparation(`serial of ${id}`) },
  ...{ toBeSigned: EVERY_BYTE, encryption: null },
  ...change,
});
export const voided = (id: string, change: Partial<VoidedCertificate> = {}): VoidedCertificate => ({
  ...{ ...prepared(id), state: 'voided', revocation: null },
  ...change,
});
/** The version is the number in its id. */
export const issued = (id: string, change: Partial<IssuedCertificate> = {}): IssuedCertificate => ({
  ...{ ...requested(id), state: 'issued', preparation: preparation(`serial of ${id}`) },
  ...{ der: EVERY_BYTE, issuedAt: NOW, version: Number(/\d+/.exec(id)?.[0] ?? 1), replacesId: null },
  ...{ revocation: null, encryption: null },
  ...change,
});

/** The certificate as stored; fails unless it is issued. */
export async function issuedIn(
  { certificates }: Pick<Repositories, 'certificates'>,
  accountId: AccountId,
  id: CertificateId,
): Promise<IssuedCertificate> {
  const found = await certificates.find(accountId, id);
  if (found?.state !== 'issued') throw new Error(`certificate ${id} is ${found?.state ?? 'missing'}`);
  return found;
}

export const revocation = (change: Partial<Revocation> = {}): Revocation => ({
  ...{ reason: 'superseded', cause: 'name_removed', causedById: null, dueAt: NOW + 1, revokedAt: null },
  ...change,
});
