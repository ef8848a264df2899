// A valid reissue to inject faults into: an order with two validated names, and the context of the decision.
import assert from 'node:assert/strict';
import { PRODUCTS, type Product } from '../../src/domain/catalog/products.ts';
import type { Order } from '../../src/domain/certificate/order.ts';
import { KEY_TYPES, type PublicKey } from '../../src/domain/certificate/public-key.ts';
import { placeholderKey } from '../../src/domain/cloud-keys/cloud-key.ts';
import { Refusal } from '../../src/domain/errors.ts';
import type { PreviousCertificate, ReissueContext, ReissueRequest } from '../../src/domain/issuance/request.ts';

export const DAY = 86_400_000;
export const NOW = Date.parse('2026-11-15T12:00:00Z');
export const NOW_SECONDS = NOW / 1000;
const SUFFIXES = ['com', 'org', 'co.uk'];

const key = (type: PublicKey['type'], bits: number): PublicKey => ({
  ...{ type, bits, spki: new TextEncoder().encode(`${type}-${bits}`), fingerprint: `${type}-${bits}` },
});
export const KEYS = new Map(
  [key('p256', 256), key('p384', 384), key('p521', 521), key('rsa', 1024), key('rsa', 2048), key('rsa', 2050)].map(
    (one) => [one.fingerprint, one],
  ),
);
export const OLD_KEY = key('p256', 256);

export const product = (id: string): Product => PRODUCTS.find((one) => one.id === id) ?? assert.fail(id);

export const ORDER: Order = {
  ...{ id: 'o', accountId: 'a', productId: 'ssl-dv', alternativeId: null, status: 'issued' },
  ...{ commonName: 'example.com', names: ['example.com', 'www.example.com'], subject: null },
  ...{ dcvMethod: 'dns', dcvScope: 'fqdn', persistUntil: null, persistPolicy: 'fqdn' },
  ...{ currentCertificateId: 'c2', pendingCertificateId: null, createdAt: NOW - DAY, termEndsAt: NOW + 364 * DAY },
  revision: 3,
};

export const PREVIOUS: PreviousCertificate = {
  ...{ id: 'c2', commonName: 'example.com', names: ORDER.names, publicKey: OLD_KEY, version: 3, cloudKeyId: null },
};

export const CONTEXT: ReissueContext = {
  now: NOW,
  credentialKind: 'standard',
  order: ORDER,
  product: product('ssl-dv'),
  previous: PREVIOUS,
  valid: [
    { id: 'c1', names: ['example.com', 'www.example.com', 'old.example.com'] },
    { id: 'c0', names: ['example.com'] },
    { id: 'c2', names: ORDER.names },
  ],
  validatedNames: new Set(['example.com', 'www.example.com']),
  readCsr: (text) => KEYS.get(text) ?? assert.fail(text),
  requireAcceptedKey: () => {},
  cloudKey: placeholderKey({ type: 'p256', bits: 256 }),
  issuers: {
    choose: (_purpose, keyType, hash) =>
      hash === 'sm3'
        ? undefined
        : {
            id: `${keyType === 'rsa' ? 'rsa' : 'ec'}-${hash}`,
            notBefore: 0,
            notAfter: NOW + 3650 * DAY,
            nameConstraints: [],
          },
    served: () => KEY_TYPES.flatMap((keyType) => [{ keyType, signHash: 'sha256' as const }]),
  },
  perspectives: Infinity,
  registrableDomain: (name) => {
    const suffix = SUFFIXES.find((one) => name.endsWith(`.${one}`));
    return (
      suffix &&
      [
        name
          .slice(0, -suffix.length - 1)
          .split('.')
          .at(-1),
        suffix,
      ].join('.')
    );
  },
};

export const REQUEST: ReissueRequest = {
  ...{ commonName: 'example.com', dnsNames: ['www.example.com'], csr: 'p384-384', keySource: 'caller' },
  ...{ signHash: 'sha256', keepsEncryptionKey: false, dryRun: false },
  ...{ acceptsRemovalOfNames: false, acceptsRevocationOfPrevious: false },
};

/** A check that always refuses. */
export const refuse = (reason: string) => (): never => {
  throw new Refusal('invalid_csr', { reason: { en: reason, zh: reason } });
};
