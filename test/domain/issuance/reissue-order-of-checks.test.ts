import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Product } from '../../../src/domain/catalog/products.ts';
import type { Order } from '../../../src/domain/certificate/order.ts';
import { type ErrorCode, Refusal } from '../../../src/domain/errors.ts';
import { planReissue } from '../../../src/domain/issuance/reissue.ts';
import type { ReissueContext, ReissueRequest } from '../../../src/domain/issuance/request.ts';
import { CONTEXT, NOW, NOW_SECONDS, REQUEST, refuse } from '../../support/reissue.ts';

type Case = { readonly request: ReissueRequest; readonly context: ReissueContext };
type Fault = readonly [
  what: string,
  make: (to: Case) => Case,
  code: ErrorCode,
  field?: string | undefined,
  reason?: RegExp,
];

const asked =
  (change: Partial<ReissueRequest>): Fault[1] =>
  ({ request, context }) => ({
    request: { ...request, ...change },
    context,
  });
const ordered =
  (change: Partial<Order>): Fault[1] =>
  ({ request, context }) => ({
    request,
    context: { ...context, order: { ...context.order, ...change } },
  });
const known =
  (change: Partial<ReissueContext>): Fault[1] =>
  ({ request, context }) => ({
    request,
    context: { ...context, ...change },
  });
const sold =
  (change: Partial<Product>): Fault[1] =>
  ({ request, context }) => ({
    request,
    context: { ...context, product: { ...context.product, ...change } },
  });
const both =
  (one: Fault[1], other: Fault[1]): Fault[1] =>
  (tx) =>
    other(one(tx));
/** Replaces the last element of a full list, so that its length stays the same. */
const alsoNamed =
  (name: string): Fault[1] =>
  ({ request, context }) => ({
    request: { ...request, dnsNames: [...(request.dnsNames ?? []).slice(0, 99), name] },
    context,
  });
const named = (count: number): Fault[1] =>
  asked({ dnsNames: ['www.example.com', ...Array.from({ length: count - 1 }, (_, index) => `n${index}.example.com`)] });
const P = 'invalid_parameters';
const [CN, SANS, CSR] = ['certificate.common_name', 'certificate.dns_names', 'certificate.csr'];

/** Every check, in execution order. */
const FAULTS: readonly Fault[] = [
  ['state: pending', ordered({ status: 'reissuing', pendingCertificateId: 'c3' }), 'reissue_in_progress'],
  ['state: not issued', ordered({ status: 'revoked' }), 'order_state_conflict', undefined, /revoked/],
  ['state: term over', ordered({ termEndsAt: NOW }), 'order_state_conflict', undefined, /is over\./],
  ['product: digest', asked({ signHash: 'sm3' }), P, 'certificate.sign_hash', /No issuer .* digest\. .*p256\+sha256/],
  ['product: common name', asked({ commonName: '' }), P, CN],
  ['product: key source', asked({ keySource: 'sign-cloud-csc' }), P, 'certificate.csr_from', /does not offer/],
  ['product: CSR missing', asked({ csr: '' }), P, CSR, /needs a csr/],
  ['names: too many sent', named(101), 'invalid_sans', SANS, /at most 100/],
  ['names: spelling of the common name', asked({ commonName: 'a_b.example.com' }), 'invalid_domain', CN, /underscore/],
  ['names: spelling', alsoNamed('a_b.example.com'), 'invalid_domain', `${SANS}.1`, /underscore/],
  ['names: not certifiable', alsoNamed('db.internal'), 'invalid_domain', `${SANS}.1`, /internal/],
  ['names: too many in all', named(100), 'invalid_sans', SANS, /these are 101/],
  [
    'names: change not allowed',
    both(alsoNamed('new.example.com'), sold({ namesMayChange: 'none' })),
    ...(['invalid_sans', SANS, /are fixed/] as const),
  ],
  [
    'consent: removal',
    asked({ dnsNames: ['mail.example.com'] }),
    ...(['remove_domain_not_confirmed', 'i_know_remove_domain_will_revoke_before_cert'] as const),
  ],
  [
    'consent: previous',
    sold({ revokesPreviousOnReissue: true }),
    ...(['revoke_last_cert_not_confirmed', 'i_know_will_revoke_last_cert'] as const),
  ],
  ['key: CSR unreadable', known({ readCsr: refuse('unreadable') }), 'invalid_csr', undefined, /unreadable/],
  ['key: not of the product', asked({ csr: 'rsa-1024' }), 'invalid_csr', CSR, /rsa, 1024 bits.*rsa 2048–8192/],
  ['key: not sound', known({ requireAcceptedKey: refuse('compromised') }), 'invalid_csr', undefined, /compromised/],
  [
    'key: no issuer',
    known({ issuers: { ...CONTEXT.issuers, choose: () => undefined } }),
    ...([P, 'certificate.sign_hash', /No issuer .* key of type .*p384\+sha256/] as const),
  ],
  [
    'key: issuer at its end',
    known({
      issuers: { ...CONTEXT.issuers, choose: () => ({ id: 'old', notBefore: 0, notAfter: NOW, nameConstraints: [] }) },
    }),
    ...(['service_busy', undefined, /has reached its end.*reseal ca import/] as const),
  ],
  ['validity: days', asked({ validityDays: 0 }), P, 'certificate.validity_days'],
  ['validity: date', asked({ customExpirationDate: '2026-11-14' }), P, 'certificate.custom_expiration_date'],
  ['validity: term', ordered({ termEndsAt: NOW + 500 }), 'order_state_conflict', undefined, /too near its end/],
  ['dcv: method', asked({ dcvMethod: 'email' }), 'invalid_dcv_method', 'dcv_method', /dns, file, dns-persist/],
  [
    'dcv: wildcard by file',
    both(alsoNamed('*.example.com'), asked({ dcvMethod: 'file' })),
    ...(['invalid_dcv_method', 'dcv_method', /by dns, dns-persist/] as const),
  ],
  ['dcv: scope', asked({ dcvScope: 'zone' }), P, 'dcv_scope', /fqdn, base_domain/],
  ['dcv: until', asked({ dcvMethod: 'dns-persist', persistUntil: NOW_SECONDS }), P, 'persist_until'],
  ['dcv: policy', asked({ dcvMethod: 'dns-persist', persistPolicy: 'zone' }), P, 'persist_policy', /fqdn, wildcard/],
];

function requireFault({ request, context }: Case, [what, , code, field, reason]: Fault, beside = ''): void {
  const message = `${what} ${beside}`;
  try {
    planReissue(request, context);
  } catch (error) {
    assert.ok(error instanceof Refusal, `${message}: ${error}`);
    assert.equal(error.code, code, `${message}: ${error.message}`);
    if (field?.startsWith(`${SANS}.`)) assert.match(error.facts.field ?? '', /^certificate\.dns_names\.\d+$/, message);
    else assert.equal(error.facts.field, field, message);
    if (reason) assert.match(error.message, reason, message);
    return;
  }
  assert.fail(`${message}: nothing was refused`);
}

test('each fault alone', () => {
  for (const fault of FAULTS) requireFault(fault[1]({ request: REQUEST, context: CONTEXT }), fault);
});

test('of two faults the one checked first is reported, for every pair', () => {
  for (const [index, first] of FAULTS.entries()) {
    for (const second of FAULTS.slice(index + 1)) {
      requireFault(first[1](second[1]({ request: REQUEST, context: CONTEXT })), first, `beside ${second[0]}`);
    }
  }
});
