// Methods by which control of a name is proven: those of orders, and the challenges of ACME. Which of a product's methods
// a challenge belongs to, and what CAA calls each.
import type { OfferedDcvMethod } from '../catalog/products.ts';

/** RFC 8555, RFC 8737, and draft-ietf-acme-dns-persist in the form of ADR 0015. */
export const ACME_METHODS = ['http-01', 'dns-01', 'tls-alpn-01', 'dns-persist-01'] as const;
export type AcmeMethod = (typeof ACME_METHODS)[number];
export type ProvingMethod = OfferedDcvMethod | AcmeMethod;

/**
 * A product that offers the method on the right offers the challenge, and accepts its proofs: both ask the same party,
 * the name's DNS or the server at its address (ADR 0070).
 */
export const OFFERED_WITH: Readonly<Record<AcmeMethod, OfferedDcvMethod>> = {
  'http-01': 'file',
  'dns-01': 'dns',
  'tls-alpn-01': 'file',
  'dns-persist-01': 'dns-persist',
};

export const isAcmeMethod = (method: string): method is AcmeMethod => ACME_METHODS.some((one) => one === method);

export const offeredAs = (method: ProvingMethod): OfferedDcvMethod =>
  isAcmeMethod(method) ? OFFERED_WITH[method] : method;

/** Every method whose proofs serve a product with these. */
export const acceptedMethods = (dcvMethods: readonly OfferedDcvMethod[]): ProvingMethod[] => [
  ...dcvMethods,
  ...ACME_METHODS.filter((method) => dcvMethods.includes(OFFERED_WITH[method])),
];

/** In `validationmethods` (RFC 8657): ACME's methods by their names, others with the prefix for names of a CA. */
export const caaMethod = (method: string): string => (isAcmeMethod(method) ? method : `ca-${method}`);
