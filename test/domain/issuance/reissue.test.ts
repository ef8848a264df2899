import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PRODUCTS } from '../../../src/domain/catalog/products.ts';
import { ORDER_STATUSES } from '../../../src/domain/certificate/order.ts';
import { Refusal } from '../../../src/domain/errors.ts';
import { keySource } from '../../../src/domain/issuance/key.ts';
import { mentionedNames } from '../../../src/domain/issuance/names.ts';
import { planReissue } from '../../../src/domain/issuance/reissue.ts';
import type { ReissueContext, ReissueRequest } from '../../../src/domain/issuance/request.ts';
import { rule } from '../../support/contract.ts';
import {
  CONTEXT,
  DAY,
  KEYS,
  NOW,
  NOW_SECONDS,
  OLD_KEY,
  ORDER,
  PREVIOUS,
  product,
  REQUEST,
  refuse,
} from '../../support/reissue.ts';

const P = 'invalid_parameters';
const HOUR = DAY / 24;

const plan = (request: Partial<ReissueRequest> = {}, context: Partial<ReissueContext> = {}) =>
  planReissue({ ...REQUEST, ...request }, { ...CONTEXT, ...context });

test('a valid reissue', () => {
  assert.deepEqual(plan(), {
    ...{ commonName: 'example.com', names: ['example.com', 'www.example.com'], added: [], removed: [] },
    ...{ publicKey: KEYS.get('p384-384'), signHash: 'sha256', issuerId: 'ec-sha256' },
    ...{ notBefore: NOW - HOUR, notAfter: NOW - HOUR + 199 * DAY - 1000 },
    ...{ needsValidation: [], revokes: [], missingConsents: [], missingPermissions: [] },
    dcv: { dcvMethod: 'dns', dcvScope: 'fqdn', persistUntil: null, persistPolicy: 'fqdn' },
  });
});

test('no certificate outlives its issuer, and an issuer with less than a day left is not used', () => {
  const by = (notAfter: number) => ({
    issuers: { ...CONTEXT.issuers, choose: () => ({ id: 'i', notBefore: 0, notAfter, nameConstraints: [] }) },
  });
  const { issuerId, notBefore, notAfter } = plan({ validityDays: 90 }, by(NOW + 30 * DAY + 500));
  assert.deepEqual([issuerId, notBefore, notAfter], ['i', NOW - HOUR, NOW + 30 * DAY]);
  assert.equal(plan({}, by(NOW + DAY)).notAfter, NOW + DAY);
  assert.throws(
    () => plan({}, by(NOW + DAY - 1)),
    (error) =>
      error instanceof Refusal &&
      error.code === 'service_busy' &&
      /reseal ca import/.test(error.facts.reason?.zh ?? '') &&
      error.facts.retryAfterSeconds === 3600,
  );
});

test('an issuer is selected for the validity that product and term allow', () => {
  const asked: number[] = [];
  const choose: ReissueContext['issuers']['choose'] = (purpose, keyType, signHash, until) => {
    asked.push(until);
    return CONTEXT.issuers.choose(purpose, keyType, signHash, until);
  };
  const issuers = { ...CONTEXT.issuers, choose };
  plan({ validityDays: 1 }, { issuers });
  plan({}, { issuers, order: { ...ORDER, termEndsAt: NOW + 5 * DAY } });
  assert.deepEqual(asked, [NOW + 199 * DAY, NOW + 5 * DAY]);
});

test('only an issued order is reissued, and a pending reissue is named', () => {
  for (const status of ORDER_STATUSES.filter((one) => one !== 'issued' && one !== 'reissuing')) {
    assert.throws(() => plan({}, { order: { ...ORDER, status } }), { code: 'order_state_conflict' }, status);
  }
  assert.throws(
    () => plan({}, { order: { ...ORDER, status: 'reissuing', pendingCertificateId: 'c3' } }),
    (error) => error instanceof Refusal && error.facts.details?.certificate_id === 'c3',
  );
});

test('names: omitted, empty, and in other spellings', () => {
  const namesOf = (request: Partial<ReissueRequest>) => plan({ acceptsRemovalOfNames: true, ...request }).names;
  assert.deepEqual(namesOf({ dnsNames: undefined }), ['example.com', 'www.example.com']);
  assert.deepEqual(namesOf({ dnsNames: [] }), ['example.com']);
  assert.deepEqual(namesOf({ dnsNames: ['WWW.Example.COM.', 'www.example.com'] }), ['example.com', 'www.example.com']);
  assert.deepEqual(namesOf({ commonName: 'www.example.com', dnsNames: undefined }), ['www.example.com', 'example.com']);
  const moved = plan({ commonName: 'New.example.com', dnsNames: undefined });
  assert.deepEqual([moved.added, moved.removed, moved.commonName], [['new.example.com'], [], 'new.example.com']);
  assert.deepEqual(moved.needsValidation, ['new.example.com']);
});

test('a kept name is checked again', () => {
  const previous = { ...PREVIOUS, names: ['example.com', 'db.internal'] };
  assert.throws(
    () => plan({ dnsNames: undefined }, { previous }),
    (error) =>
      error instanceof Refusal && error.code === 'invalid_domain' && error.facts.field === 'certificate.dns_names',
  );
});

test('name rules of products', () => {
  const outcome = (id: string, dnsNames: string[]) => {
    try {
      return plan({ dnsNames, acceptsRemovalOfNames: true }, { product: product(id) }).names.length;
    } catch (error) {
      return error instanceof Refusal && error.code;
    }
  };
  const [same, more, less] = [['www.example.com'], ['www.example.com', 'a.example.com'], []];
  assert.deepEqual(
    [same, more, less].map((names) => outcome('ssl-dv', names)),
    [2, 3, 1],
  );
  assert.deepEqual(
    [same, more, less].map((names) => outcome('ssl-dv-add', names)),
    [2, 3, 'invalid_sans'],
  );
  assert.deepEqual(
    [same, more, less].map((names) => outcome('ssl-dv-fixed', names)),
    [2, 'invalid_sans', 'invalid_sans'],
  );
});

test('consents: a refusal lists the names and certificates concerned, and a dry run lists the missing consents', () => {
  const replace = product('ssl-dv-replace');
  const removal = { dnsNames: ['mail.example.com'] };
  for (const [request, code] of [
    [removal, 'remove_domain_not_confirmed'],
    [{ ...removal, acceptsRevocationOfPrevious: true }, 'remove_domain_not_confirmed'],
    [{ ...removal, acceptsRemovalOfNames: true }, 'revoke_last_cert_not_confirmed'],
  ] as const) {
    assert.throws(
      () => plan(request, { product: replace }),
      (error) => {
        assert.ok(error instanceof Refusal);
        assert.equal(error.code, code);
        assert.deepEqual(error.facts.details, { removed_names: ['www.example.com'], certificates: ['c2', 'c1'] });
        return true;
      },
    );
  }
  const found = plan({ ...removal, dryRun: true }, { product: { ...replace, revocationGraceHours: 24 } });
  assert.deepEqual(found.missingConsents, ['remove_domain_not_confirmed', 'revoke_last_cert_not_confirmed']);
  assert.deepEqual(found.revokes, [
    { certificateId: 'c2', reason: 'superseded', cause: 'name_removed', afterHours: 24 },
    { certificateId: 'c1', reason: 'superseded', cause: 'name_removed', afterHours: 24 },
  ]);
});

test('a revoking product revokes the previous certificate only, and only while it is valid', () => {
  const replace = { product: product('ssl-dv-replace') };
  const agreed = { acceptsRevocationOfPrevious: true };
  const cause = 'previous_replaced';
  assert.deepEqual(plan(agreed, replace).revokes, [
    { certificateId: 'c2', reason: 'superseded', cause, afterHours: 0 },
  ]);
  const valid = CONTEXT.valid.filter(({ id }) => id !== PREVIOUS.id);
  assert.deepEqual(plan(agreed, { ...replace, valid }).revokes, []);
  assert.throws(() => plan({}, { ...replace, valid }), { code: 'revoke_last_cert_not_confirmed' });
});

test('CSR: where it may be omitted, the last key is reused if it still meets the policy', () => {
  const optional = { product: product('tls-private') };
  assert.equal(plan({ csr: '' }, optional).publicKey, OLD_KEY);
  assert.equal(plan({ csr: undefined }, optional).publicKey, OLD_KEY);
  assert.equal(plan({}, optional).publicKey.type, 'p384');
  assert.throws(() => plan({ csr: '' }, { ...optional, requireAcceptedKey: refuse('listed') }), {
    code: 'invalid_csr',
  });
  const forbidden = { product: { ...product('tls-private'), csr: 'forbidden' as const } };
  assert.equal(plan({ csr: '' }, forbidden).publicKey, OLD_KEY);
  assert.throws(() => plan({}, forbidden), { code: P });
  assert.throws(() => plan({ csr: 'rsa-2050' }), { code: 'invalid_csr' });
  assert.equal(plan({ csr: 'rsa-2050' }, optional).publicKey.bits, 2050);
});

test('csr_from: exactly two values', () => {
  assert.deepEqual([undefined, '', 'sign-cloud-csc'].map(keySource), ['caller', 'caller', 'sign-cloud-csc']);
  for (const text of ['caller', 'sign-cloud', 'SIGN-CLOUD-CSC', ' ', 'sign-cloud-csc ', '__proto__']) {
    assert.throws(() => keySource(text), { code: P }, text);
  }
});

test('products without DNS names keep the text they certify, and need no validation', () => {
  for (const id of ['code-signing', 'document-signing']) {
    const signing = {
      product: product(id),
      order: { ...ORDER, dcvMethod: null },
      previous: { ...PREVIOUS, commonName: 'Example Ltd_', names: [] },
    };
    for (const commonName of [undefined, '', 'Example Ltd_']) {
      const { names, needsValidation, dcv, ...rest } = plan({ commonName, dnsNames: undefined }, signing);
      assert.deepEqual([rest.commonName, names, needsValidation, dcv.dcvMethod], ['Example Ltd_', [], [], null]);
    }
    assert.deepEqual(
      plan({ dnsNames: [] }, { ...signing, previous: { ...signing.previous, commonName: 'example.com' } }).names,
      [],
    );
    assert.throws(() => plan({ commonName: 'Other Ltd', dnsNames: undefined }, signing), { code: 'invalid_sans' });
    assert.throws(() => plan({ commonName: '', dnsNames: ['a.com'] }, signing), { code: 'invalid_sans' });
    const unspoken = { commonName: '', dnsNames: undefined };
    assert.throws(() => plan({ ...unspoken, dcvMethod: 'dns' }, signing), { code: 'invalid_dcv_method' });
    assert.throws(() => plan({ ...unspoken, dcvScope: 'fqdn' }, signing), { code: P });
  }
});

test('dcv: an omitted method is kept, a given one must be offered', () => {
  const order = { ...ORDER, dcvMethod: 'file' as const, dcvScope: 'base_domain' as const };
  const dcv = (request: Partial<ReissueRequest>, context: Partial<ReissueContext> = {}) =>
    plan(request, { order, ...context }).dcv;
  assert.deepEqual([dcv({}).dcvMethod, dcv({}).dcvScope], ['file', 'base_domain']);
  assert.deepEqual([dcv({ dcvMethod: 'dns' }).dcvMethod, dcv({ dcvScope: 'fqdn' }).dcvScope], ['dns', 'fqdn']);
  for (const dcvMethod of ['', 'DNS', 'http', 'email', '__proto__']) {
    assert.throws(() => dcv({ dcvMethod }), { code: 'invalid_dcv_method' }, dcvMethod);
  }
  for (const dcvScope of ['', 'FQDN', 'base-domain']) assert.throws(() => dcv({ dcvScope }), { code: P }, dcvScope);
});

test('dcv: the method matters only if a name needs validation', () => {
  const wildcard = { dnsNames: ['www.example.com', '*.example.com'] };
  const byFile = { order: { ...ORDER, dcvMethod: 'file' as const } };
  assert.throws(() => plan(wildcard, byFile), { code: 'invalid_dcv_method' });
  const validatedNames = new Set(['example.com', 'www.example.com', '*.example.com']);
  assert.deepEqual(plan(wildcard, { ...byFile, validatedNames }).needsValidation, []);
  assert.deepEqual(plan({ ...wildcard, dcvMethod: 'dns' }, byFile).needsValidation, ['*.example.com']);
  const byMail = { order: { ...ORDER, dcvMethod: 'email' as const } };
  assert.equal(plan({}, byMail).dcv.dcvMethod, 'email');
  assert.throws(() => plan(wildcard, byMail), { code: 'invalid_dcv_method' });
});

test('the persist binding: omitted keeps, 0 clears, and only a dns-persist request changes it', () => {
  const later = NOW_SECONDS + 1;
  const order = {
    ...ORDER,
    dcvMethod: 'dns-persist' as const,
    persistUntil: 1_900_000_000,
    persistPolicy: 'wildcard' as const,
  };
  const binding = (request: Partial<ReissueRequest>) => {
    const { persistUntil, persistPolicy } = plan(request, { order }).dcv;
    return [persistUntil, persistPolicy];
  };
  const persist = { dcvMethod: 'dns-persist' };
  assert.deepEqual(binding({}), [1_900_000_000, 'wildcard']);
  assert.deepEqual(binding(persist), [1_900_000_000, 'fqdn']);
  assert.deepEqual(binding({ ...persist, persistUntil: undefined }), [1_900_000_000, 'fqdn']);
  assert.deepEqual(binding({ ...persist, persistUntil: 0 }), [null, 'fqdn']);
  assert.deepEqual(binding({ ...persist, persistUntil: -0 }), [null, 'fqdn']);
  assert.deepEqual(binding({ ...persist, persistUntil: later, persistPolicy: 'wildcard' }), [later, 'wildcard']);
  for (const persistUntil of [-1, 1, NOW_SECONDS, NOW, 1e300, 0.5, later + 0.5, 253_402_300_800]) {
    assert.throws(() => binding({ ...persist, persistUntil }), { code: P }, String(persistUntil));
    // Nothing uses them here, so nothing about them is an error (contract reissue 10).
    const ignored = { persistUntil, persistPolicy: 'nonsense' };
    assert.deepEqual(binding(ignored), [1_900_000_000, 'wildcard']);
    assert.deepEqual(binding({ ...ignored, dcvMethod: 'dns' }), [1_900_000_000, 'wildcard']);
  }
});

test('for any request and product, the plan keeps its invariants', () => {
  const name = fc.constantFrom(
    'example.com',
    'www.example.com',
    'A.example.com.',
    '*.example.com',
    'db.internal',
    'x_y.com',
  );
  const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
  const requests: fc.Arbitrary<ReissueRequest> = fc.record({
    commonName: maybe(name),
    dnsNames: maybe(fc.array(name, { maxLength: 4 })),
    csr: maybe(fc.constantFrom('', ...KEYS.keys())),
    keySource: fc.constantFrom('caller', 'caller', 'sign-cloud-csc'),
    // The most common one twice; otherwise most requests would be refused for their digest alone.
    signHash: fc.constantFrom('sha256', 'sha256', 'sha384', 'sha512', 'sm3'),
    keepsEncryptionKey: fc.boolean(),
    validityDays: maybe(fc.constantFrom(1, 90, 1000)),
    customExpirationDate: maybe(fc.constantFrom('2026-12-24', '2030-01-01')),
    acceptsRemovalOfNames: fc.boolean(),
    acceptsRevocationOfPrevious: fc.boolean(),
    dcvMethod: maybe(fc.constantFrom('dns', 'file', 'dns-persist')),
    dcvScope: maybe(fc.constantFrom('fqdn', 'base_domain')),
    persistUntil: maybe(fc.constantFrom(0, NOW_SECONDS + 9)),
    persistPolicy: maybe(fc.constantFrom('fqdn', 'wildcard')),
    dryRun: fc.boolean(),
  });
  let planned = 0;
  fc.assert(
    fc.property(requests, fc.constantFrom(...PRODUCTS), (request, sold) => {
      const context = { ...CONTEXT, product: sold };
      let made: ReturnType<typeof planReissue>;
      try {
        made = planReissue(request, context);
      } catch (error) {
        assert.ok(error instanceof Refusal, String(error));
        return;
      }
      planned += 1;
      const mentioned = mentionedNames(request, sold.kind, PREVIOUS.names);
      assert.deepEqual(made.names, mentioned);
      assert.deepEqual(
        made.removed,
        PREVIOUS.names.filter((one) => !mentioned.includes(one)),
      );
      assert.deepEqual(
        made.needsValidation,
        made.names.filter((one) => !context.validatedNames.has(one)),
      );
      if (!request.dryRun) assert.deepEqual(made.missingConsents, []);
      if (made.removed.length > 0 && !request.dryRun) assert.ok(request.acceptsRemovalOfNames);
      for (const { id, names } of context.valid) {
        const mustGo =
          names.some((one) => made.removed.includes(one)) || (sold.revokesPreviousOnReissue && id === PREVIOUS.id);
        assert.equal(made.revokes.filter(({ certificateId }) => certificateId === id).length, mustGo ? 1 : 0);
      }
      assert.equal(made.signHash, request.signHash);
      assert.ok(made.notAfter < made.notBefore + sold.maxValidityDays * DAY && made.notAfter < ORDER.termEndsAt);
      assert.deepEqual(planReissue({ ...request, keepsEncryptionKey: !request.keepsEncryptionKey }, context), made);
      assert.deepEqual(planReissue(request, context), made);
    }),
    { numRuns: 6000 },
  );
  assert.ok(planned > 100, `only ${planned} requests were accepted`);
});

test('looking up names before the decision never causes a refusal', () => {
  const anything = fc.option(fc.string({ unit: 'binary' }), { nil: undefined });
  fc.assert(
    fc.property(
      anything,
      fc.option(fc.array(fc.string(), { maxLength: 150 }), { nil: undefined }),
      (commonName, dnsNames) => {
        const names = mentionedNames({ ...REQUEST, commonName, dnsNames }, 'ssl', PREVIOUS.names);
        assert.ok(names.length <= 101 && new Set(names).size === names.length);
      },
    ),
  );
});

rule('reissue 45', 'An order gets at most 10 000 certificates; a reissue beyond is `order_state_conflict`', () => {
  const withVersion = (version: number) => ({ ...CONTEXT, previous: { ...PREVIOUS, version } });
  const request = { ...REQUEST, dryRun: true };
  assert.doesNotThrow(() => planReissue(request, withVersion(9_999)));
  assert.throws(() => planReissue(request, withVersion(10_000)), { code: 'order_state_conflict' });
});
