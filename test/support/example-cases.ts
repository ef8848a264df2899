// How each error that an operation declares for itself is provoked: by a request, or by a request in a certain state of the
// service. A code without a row here fails the test of the examples.
import type { Product } from '../../src/domain/catalog/products.ts';
import type { ErrorCode } from '../../src/domain/errors.ts';
import type { BoundedOperation } from '../../src/usecases/access/in-flight.ts';
import type { Answer, Key } from './app.ts';
import { authorization, type CloudKey, CODE, digest, newCloudKey, withCode } from './cloud-keys.ts';
import type { OperationCall } from './example-client.ts';
import type { Entities, ExampleSession } from './example-session.ts';
import { csrFor, newOrder } from './orders.ts';

type Provoke = OperationCall | (() => Promise<Answer>);
/** By operation and code, or status where errors have another form. */
export type Cases = Readonly<Record<string, Readonly<Partial<Record<ErrorCode | number, Provoke>>>>>;

export async function ownCases(session: ExampleSession, entities: Entities): Promise<Cases> {
  const { app, client, world } = session;
  const { key, own, waiting, issued, canceledCertificateId, deliveryId } = entities;
  const at = (id: string) => ({ parameters: { id } });
  const none = at('none');
  const certificate = { csr: csrFor(), common_name: 'www.example.com', sign_hash: 'sha256' };
  const certify = (id: string, change: object = {}, top: object = {}): OperationCall => ({
    ...at(id),
    body: { certificate: { ...certificate, ...change }, ...top },
  });
  const integration = await app.anotherKey(key.accountId, 'integration_key');
  const signing = await newOrder(app, { product: 'document-signing', commonName: 'Acme Ltd' }, key);
  const fixed = await newOrder(app, { product: 'ssl-dv-fixed' }, key);
  const replacing = await newOrder(app, { product: 'ssl-dv-replace' }, key);
  const linted = await newOrder(app, { product: 'linted', commonName: 'linted.example.com' }, key);
  const pending = await newOrder(app, {}, key);
  await client.call('reissueCertificate', { key, ...certify(pending.id, { dns_names: ['new.example.net'] }) });
  const sparse = await app.newKey();
  const held = await newCloudKey(app);
  const signer = await newCloudKey(app);
  const scheduled = await onScheduled(session, key);
  const named = { alternative_order_id: 'shop-1001' };
  const issuance = (id: string) => ({
    invalid_parameters: certify(id, { sign_hash: 'md5' }),
    invalid_csr: certify(id, { csr: 'MIIB' }),
    invalid_domain: certify(id, { dns_names: ['-.example'] }),
    invalid_dcv_method: certify(id, {}, { dcv_method: 'email' }),
  });
  /** Offers a product no more while `call` runs. */
  const withdrawn = (id: string, operationId: string, call: OperationCall) => async () => {
    const products = app.issuance.products as Map<string, Product>;
    const product = products.get(id);
    products.delete(id);
    try {
      return await client.call(operationId, { key, ...call });
    } finally {
      if (product) products.set(id, product);
    }
  };
  /** While another one of the account is under way, which is all it may have. */
  const during = (kind: BoundedOperation, operationId: string, call: OperationCall) => async () => {
    using _ = await app.app.peers.acquireSlot(kind, key.accountId);
    return await client.call(operationId, { key, ...call });
  };
  const full = await app.newKey();
  const theirs = await newOrder(app, {}, full);
  await app.app.access.changeQuotas(full.accountId, { openOrders: 0 });
  const oftenAs = (operationId: string, call: OperationCall) => async () => {
    for (;;) {
      const answer = await client.call(operationId, { key, ...call });
      if (answer.status === 429) return answer;
    }
  };
  const receiver = { access_key: 'an-access-key-of-your-choice' };
  const target = {
    invalid_parameters: { body: { url: '' } },
    invalid_callback_url: { body: { url: 'hooks.example.com', ...receiver } },
    callback_url_not_https: { body: { url: 'http://hooks.example.com/', ...receiver } },
    callback_private_domain: { body: { url: 'https://192.168.1.10/', ...receiver } },
  };
  const dcv = {
    order_not_found: none,
    order_state_conflict: at(issued.id),
  };
  return {
    placeOrder: {
      ...issuance('ssl-dv'),
      invalid_sans: certify('ssl-dv', {
        dns_names: Array.from({ length: 101 }, (_, index) => `n${index}.example.com`),
      }),
      product_not_found: certify('ssl-unknown'),
      duplicate_alternative_order_id: certify('ssl-dv', {}, named),
      idempotency_key_reused: {
        parameters: { id: 'ssl-dv', 'Idempotency-Key': 'a-key-for-this-order' },
        body: { certificate },
      },
      lint_refused: certify('linted', { common_name: 'lint-refused.example.com' }),
      permission_denied: certify('document-signing', { common_name: 'Acme Ltd' }),
      quota_exceeded: { key: full, ...certify('ssl-dv', { common_name: 'unproven.example.net' }) },
      request_too_fast: during('placement', 'placeOrder', certify('ssl-dv')),
    },
    reissueCertificate: {
      ...issuance(fixed.id),
      invalid_sans: certify(fixed.id, { dns_names: ['other.example.com'] }),
      order_not_found: certify('none'),
      lint_refused: certify(linted.id, { common_name: 'linted.example.com', dns_names: ['lint-refused.example.com'] }),
      order_state_conflict: certify(waiting.id),
      reissue_in_progress: certify(pending.id),
      remove_domain_not_confirmed: certify(issued.id, { common_name: 'example.net', dns_names: [] }),
      revoke_last_cert_not_confirmed: certify(replacing.id),
      permission_denied: {
        key: integration,
        ...at(signing.id),
        body: { certificate: { csr: csrFor(), sign_hash: 'sha256' } },
      },
      product_not_found: withdrawn('ssl-dv-fixed', 'reissueCertificate', certify(fixed.id)),
      quota_exceeded: { key: full, ...certify(theirs.id, { dns_names: ['unproven.example.net'] }) },
      request_too_fast: during('dry_run', 'reissueCertificate', {
        ...certify(issued.id),
        parameters: { id: issued.id, dry_run: true },
      }),
      idempotency_key_reused: {
        parameters: { id: issued.id, 'Idempotency-Key': 'a-key-for-this-reissue' },
        body: { certificate },
      },
    },
    getOrder: { order_not_found: none },
    getOrderByAlternativeId: { order_not_found: { parameters: { alternative_order_id: 'none' } } },
    cancelOrder: { order_not_found: none, cancel_not_allowed: at(issued.id) },
    changeDcvMethod: {
      order_not_found: { ...none, body: { dcv_method: 'dns' } },
      order_state_conflict: { ...at(issued.id), body: { dcv_method: 'dns' } },
      invalid_dcv_method: { ...at(waiting.id), body: { dcv_method: 'email' } },
      product_not_found: withdrawn('ssl-dv', 'changeDcvMethod', { ...at(waiting.id), body: { dcv_method: 'dns' } }),
    },
    validateDomains: { ...dcv, request_too_fast: oftenAs('validateDomains', at(waiting.id)) },
    checkDomains: { ...dcv, request_too_fast: oftenAs('checkDomains', at(waiting.id)) },
    getCertificate: { cert_not_found: none },
    revokeCertificate: {
      cert_not_found: none,
      revocation_state_conflict: at(canceledCertificateId),
      invalid_parameters: { ...at(own.certificateId), body: { reason: 'lost' } },
    },
    rescheduleRevocation: {
      cert_not_found: { ...none, body: { due_at: '2027-01-31T12:00:00Z' } },
      revocation_state_conflict: { ...at(own.certificateId), body: { due_at: '2027-01-31T12:00:00Z' } },
      product_not_found: withdrawn('own', 'rescheduleRevocation', {
        ...scheduled,
        body: { due_at: '2026-12-20T12:00:00Z' },
      }),
    },
    cancelRevocation: {
      cert_not_found: none,
      revocation_state_conflict: at(own.certificateId),
      product_not_found: withdrawn('own', 'cancelRevocation', scheduled),
    },
    saveCallbackSettings: { ...target, callback_not_configured: { key: sparse, body: { disabled: true } } },
    rotateCallbackSecret: { callback_not_configured: { key: sparse } },
    testCallback: {
      ...target,
      callback_not_configured: { key: sparse },
      callback_send_error: { body: { url: 'https://unknown.example.test/', ...receiver } },
      callback_response_not_200: { body: { url: world.url('/broken'), ...receiver } },
      request_too_fast: oftenAs('testCallback', {}),
    },
    listOrders: { invalid_parameters: { parameters: { limit: 0 } } },
    listDeliveries: { invalid_parameters: { parameters: { state: 'lost' } } },
    resendDelivery: {
      delivery_not_found: none,
      callback_not_configured: await suppressed(session, sparse),
      callback_paused: () => whilePaused(session, key, () => client.call('resendDelivery', { key, ...at(deliveryId) })),
    },
    resendDeliveries: {
      callback_not_configured: { key: sparse, body: { state: 'failed' } },
      callback_paused: () =>
        whilePaused(session, key, () => client.call('resendDeliveries', { key, body: { state: 'failed' } })),
    },
    authorizeSigning: {
      429: async () => {
        for (;;) {
          const body = authorization(signer.id, [digest('sha256', 'x')], withCode('wrong-code'));
          const answer = await client.call('authorizeSigning', { key: signer.key, body });
          if (answer.status === 429) return answer;
        }
      },
    },
    changeCloudKeyPin: {
      cloud_key_not_found: { ...none, body: { pin: CODE, new_pin: 'Red-Lighthouse-48' } },
      ...wrongPins(session, held, 'changeCloudKeyPin', { new_pin: 'Red-Lighthouse-48' }),
    },
    destroyCloudKey: {
      cloud_key_not_found: { ...none, body: { pin: CODE } },
      ...wrongPins(session, await newCloudKey(app), 'destroyCloudKey', {}),
    },
  };
}

/** The first certificate of an order whose revocation is scheduled. */
async function onScheduled({ app, client }: ExampleSession, key: Key): Promise<OperationCall> {
  const { id, certificateId } = await newOrder(app, { product: 'own', commonName: 'wiki.example.com' }, key);
  const body = {
    certificate: { common_name: 'wiki.example.com', sign_hash: 'sha256' },
    i_know_will_revoke_last_cert: true,
  };
  await client.call('reissueCertificate', { key, parameters: { id }, body });
  return { parameters: { id: certificateId } };
}

/** An event of an account without settings, which is suppressed. */
async function suppressed({ app, client }: ExampleSession, key: Key): Promise<OperationCall> {
  await newOrder(app, {}, key);
  const { body } = await client.call('listDeliveries', { key });
  return { key, parameters: { id: body.data.deliveries[0].id } };
}

async function whilePaused({ client }: ExampleSession, key: Key, call: () => Promise<Answer>): Promise<Answer> {
  await client.call('saveCallbackSettings', { key, body: { disabled: true } });
  const answer = await call();
  await client.call('saveCallbackSettings', { key, body: { disabled: false } });
  return answer;
}

/** One wrong code, as many as lock the key, and as many as the account may try. In this order. */
function wrongPins({ client }: ExampleSession, { key, id }: CloudKey, operationId: string, body: object) {
  const until = (code: ErrorCode) => async () => {
    for (;;) {
      const answer = await client.call(operationId, { key, parameters: { id }, body: { pin: 'wrong-code', ...body } });
      if (answer.body.code === code) return answer;
    }
  };
  return {
    sign_key_pin_wrong: until('sign_key_pin_wrong'),
    sign_key_locked: until('sign_key_locked'),
    request_too_fast: until('request_too_fast'),
  };
}
