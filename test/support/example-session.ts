// The session from which the examples of the OpenAPI document are recorded: an account holder who orders, proves, reissues,
// is called back and revokes, with every operation and every event on the way.
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { ACTION_IDS } from '../../src/domain/callbacks/callback.ts';
import type { Key, TestApp } from './app.ts';
import { type CallbackApp, callbackIn, startCallbackApp } from './callback-app.ts';
import { authorization, CODE, digest, ECDSA_SHA256, HINT } from './cloud-keys.ts';
import { answerWith, routeByPath, waitFor } from './deliveries.ts';
import type { Json } from './document.ts';
import { ExampleClient, type OperationCall } from './example-client.ts';
import { lintersFile } from './linters.ts';
import { csrFor, newOrder, type PlacedOrder, reissue } from './orders.ts';
import { OWN_PRODUCT, productsFile } from './products.ts';

export const DAY = 86_400_000;
export const GRACE = {
  ...OWN_PRODUCT,
  id: 'own',
  csr: 'optional',
  revokes_previous_on_reissue: true,
  revocation_grace_hours: 48,
};

/** What the linter of the tests refuses depends on the name. */
export const LINTED = {
  ...{ ...OWN_PRODUCT, id: 'linted', csr: 'optional', dcv_scopes: ['fqdn', 'base_domain'], requires_lint: true },
};

export interface RecordedCall {
  readonly operationId: string;
  readonly name: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly body?: Json;
  readonly answer?: Json;
}
export interface RecordedEvent {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json;
}

/** What the errors are provoked with afterwards. */
export interface Entities {
  readonly key: Key;
  /** Issued, with a scheduled revocation of its first certificate. */
  readonly own: PlacedOrder;
  /** Waits for validation. */
  readonly waiting: PlacedOrder;
  readonly issued: PlacedOrder;
  readonly canceledCertificateId: string;
  readonly deliveryId: string;
  /** Destroyed. */
  readonly cloudKeyId: string;
}

export class ExampleSession implements AsyncDisposable {
  readonly world: CallbackApp;
  readonly client: ExampleClient;
  readonly calls: RecordedCall[] = [];
  readonly events: Record<string, RecordedEvent> = {};
  /** Connections of callback tests that wait for an answer. */
  readonly silent: Socket[] = [];

  private constructor(world: CallbackApp, client: ExampleClient) {
    this.world = world;
    this.client = client;
  }

  static async open(): Promise<ExampleSession> {
    const world = await startCallbackApp({
      RESEAL_PRODUCTS_FILE: productsFile(GRACE, LINTED),
      RESEAL_LINTERS_FILE: lintersFile(),
      // So that one of a kind uses them up; two places, so that an account has a share of its own.
      ...{ RESEAL_MAX_REQUESTS: '2', RESEAL_PLACEMENTS_PER_ACCOUNT: '1', RESEAL_DRY_RUNS_PER_ACCOUNT: '1' },
      RESEAL_CALLBACK_TEST_RATE: '6/min',
    });
    const route = routeByPath(world);
    route('/broken', answerWith(500));
    route('/silent', (socket) => session.silent.push(socket));
    const session = new ExampleSession(world, await ExampleClient.of(world.app));
    return session;
  }

  get app(): TestApp {
    return this.world.app;
  }

  /** Calls an operation, and records call and answer as an example under that name. */
  async example(operationId: string, name: string, call: OperationCall & { readonly key: Key }): Promise<Json> {
    const { parameters, body } = call;
    const answer = await this.client.call(operationId, call);
    assert.ok(answer.status === 200 || answer.status === 204, `${operationId}: ${answer.text}`);
    this.calls.push({
      ...{ operationId, name },
      ...(parameters && { parameters }),
      ...(body !== undefined && { body: this.#withoutPort(body) }),
      ...(answer.body && { answer: this.#withoutPort(answer.body) }),
    });
    return answer.body?.data ?? answer.body;
  }

  /** The port of the receiver is the test's, and says nothing to a reader. */
  #withoutPort = (value: Json): Json =>
    JSON.parse(JSON.stringify(value).replaceAll(`:${this.world.receiver.port}/`, '/'));

  /** Publishes what the order asks for. */
  publish(order: Json): void {
    for (const { auth_path, auth_val } of order.dcv_val) this.world.outside.dns.set(auth_path, 'TXT', [auth_val]);
  }

  async recordEvent(action: string): Promise<void> {
    const { receiver } = this.world;
    const received = () => receiver.requests.map((_, index) => callbackIn(receiver, index));
    const found = await waitFor(action, () =>
      received().find(({ body }) => body.action_id === action && !body.order_id?.startsWith('test-')),
    );
    const { host: _, ...headers } = found.headers;
    this.events[action] = { headers, body: found.body };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world[Symbol.asyncDispose]();
  }
}

export async function runSession(session: ExampleSession): Promise<Entities> {
  const key = await session.app.newKey({ name: 'Example' });
  await aboutAccount(session, key);
  await aboutCallbacks(session, key);
  await aboutRejection(session, key);
  await aboutExpiry(session, key);
  const issued = await aboutOrders(session, key);
  const own = await aboutRevocations(session, key);
  const { waiting, canceledCertificateId } = await aboutWaiting(session, issued);
  const deliveryId = await aboutDeliveries(session, key);
  const cloudKeyId = await aboutCloudKeys(session, key);
  await session.example('listAudit', 'audit', { key, parameters: { limit: 2 } });
  await session.recordEvent('order:issued');
  await session.recordEvent('order:revoked');
  await session.recordEvent('order:reissue_canceled');
  return { key, own, waiting, issued, canceledCertificateId, deliveryId, cloudKeyId };
}

async function aboutAccount(session: ExampleSession, key: Key): Promise<void> {
  await session.example('listProducts', 'products', { key });
  await session.example('getAccount', 'account', { key });
  await session.example('updateAccount', 'renamed', { key, body: { name: 'Acme Ltd', locale: 'en' } });
}

async function aboutCallbacks(session: ExampleSession, key: Key): Promise<void> {
  const body = { url: session.world.url('/certificates'), access_key: 'an-access-key-of-your-choice' };
  await session.example('saveCallbackSettings', 'saved', { key, body });
  await session.example('getCallbackSettings', 'settings', { key });
  await session.example('testCallback', 'saved', { key });
  await session.example('testCallback', 'temporary', { key, body: { url: session.world.url('/elsewhere') } });
  await session.example('rotateCallbackSecret', 'rotated', { key });
  const other = await session.app.newKey();
  await session.client.call('saveCallbackSettings', { key: other, body });
  await session.example('deleteCallbackSettings', 'deleted', { key: other });
}

/** An order whose names stay unproven. */
async function aboutRejection(session: ExampleSession, key: Key): Promise<void> {
  const { app } = session;
  const certificate = { csr: csrFor(), common_name: 'forgotten.example.org', sign_hash: 'sha256' };
  await session.client.call('placeOrder', { key, parameters: { id: 'ssl-dv' }, body: { certificate } });
  app.advance(31 * DAY);
  await app.issuance.proveDomains.proveDue();
  await session.recordEvent('order:rejected');
}

const NAMES = ['www.example.com', 'example.com'] as const;

async function aboutOrders(session: ExampleSession, key: Key): Promise<PlacedOrder> {
  const [common_name, ...dns_names] = NAMES;
  const certificate = { csr: csrFor(), common_name, dns_names, sign_hash: 'sha256' };
  const placed = await session.example('placeOrder', 'waiting', {
    key,
    parameters: { id: 'ssl-dv', 'Idempotency-Key': 'a-key-for-this-order' },
    body: { certificate, dcv_method: 'dns-persist', alternative_order_id: 'shop-1001' },
  });
  const parameters = { id: placed.id };
  await session.example('getOrder', 'waiting', { key, parameters });
  await session.example('getOrderByAlternativeId', 'waiting', {
    key,
    parameters: { alternative_order_id: 'shop-1001' },
  });
  const body = { dcv_method: 'dns', dcv_scope: 'base_domain' };
  const changed = await session.example('changeDcvMethod', 'dns', { key, parameters, body });
  await session.example('checkDomains', 'unpublished', { key, parameters });
  session.publish(changed);
  const { status } = await session.example('validateDomains', 'issued', { key, parameters });
  assert.equal(status, 'issued');
  await session.example('listOrders', 'orders', { key, parameters: { name_suffix: 'example.com', limit: 50 } });
  await session.example('listCertificates', 'certificates', {
    key,
    parameters: { name: 'www.example.com', revoked: false },
  });
  await session.example('getCertificate', 'issued', { key, parameters: { id: placed.certificate.id } });
  const fewer = { certificate: { csr: csrFor(), common_name, dns_names: [], sign_hash: 'sha256', validity_days: 90 } };
  await session.example('reissueCertificate', 'dryRun', {
    key,
    parameters: { ...parameters, dry_run: true },
    body: fewer,
  });
  const consent = { ...fewer, i_know_remove_domain_will_revoke_before_cert: true };
  const reissued = await session.example('reissueCertificate', 'issued', {
    key,
    parameters: { ...parameters, 'Idempotency-Key': 'a-key-for-this-reissue' },
    body: consent,
  });
  return { key, id: placed.id, certificateId: reissued.certificate.id };
}

/** Of a product with a period of grace: the first certificate is revoked some time after the second was issued. */
async function aboutRevocations(session: ExampleSession, key: Key): Promise<PlacedOrder> {
  const { app } = session;
  const own = await newOrder(app, { product: 'own', commonName: 'intranet.example.com' }, key);
  const body = {
    certificate: { common_name: 'intranet.example.com', sign_hash: 'sha256' },
    i_know_will_revoke_last_cert: true,
  };
  const call = { key, parameters: { id: own.id }, body };
  const { certificateId: first } = own;
  const { data } = (await session.client.call('reissueCertificate', call)).body;
  const parameters = { id: first };
  const due_at = new Date(app.now() + DAY).toISOString();
  await session.example('rescheduleRevocation', 'later', { key, parameters, body: { due_at } });
  await session.example('cancelRevocation', 'canceled', { key, parameters });
  await session.example('revokeCertificate', 'superseded', { key, parameters, body: { reason: 'superseded' } });
  return { key, id: own.id, certificateId: data.certificate.id };
}

/** The account asks for notices, and a certificate comes close to its end. */
async function aboutExpiry(session: ExampleSession, key: Key): Promise<void> {
  const { app } = session;
  const body = { enabled_actions: [...ACTION_IDS] };
  await session.example('saveCallbackSettings', 'everyAction', { key, body });
  const order = await newOrder(app, { commonName: 'soon.example.com' }, key);
  const notice = () => app.callbacks.deliveryChores.find(({ name }) => name === 'notify_expiry')?.run();
  await notice();
  await reissue(app, order, {
    certificate: { csr: csrFor(), common_name: 'soon.example.com', sign_hash: 'sha256', validity_days: 2 },
  });
  app.advance(1.5 * DAY);
  await notice();
  await session.recordEvent('order:expiring');
}

async function aboutWaiting(session: ExampleSession, { key, id }: PlacedOrder) {
  const certificate = { csr: csrFor(), common_name: 'shop.example.net', sign_hash: 'sha256' };
  const place = async (): Promise<PlacedOrder> => {
    const { body } = await session.client.call('placeOrder', {
      key,
      parameters: { id: 'ssl-dv' },
      body: { certificate },
    });
    return { key, id: body.data.id, certificateId: body.data.certificate.id };
  };
  const [given, waiting] = [await place(), await place()];
  await session.example('cancelOrder', 'canceled', { key, parameters: { id: given.id } });
  const more = { ...certificate, common_name: NAMES[0], dns_names: ['shop.example.net'] };
  await session.client.call('reissueCertificate', { key, parameters: { id }, body: { certificate: more } });
  await session.example('cancelOrder', 'reissue', { key, parameters: { id } });
  return { waiting, canceledCertificateId: given.certificateId };
}

async function aboutDeliveries(session: ExampleSession, key: Key): Promise<string> {
  const delivered = await waitFor('all events', async () => {
    const { deliveries } = (await session.client.call('listDeliveries', { key })).body.data;
    return deliveries.length >= 4 && deliveries.every(({ state }: Json) => state === 'delivered') && deliveries;
  });
  const { order_id, id } = delivered.at(-1);
  // Resending makes the dispatcher work at once: what the answer shows must not depend on how far it came.
  await session.app.callbacks.dispatcher.stop(0);
  await session.example('listDeliveries', 'delivered', { key, parameters: { order_id, state: 'delivered', limit: 1 } });
  await session.example('resendDelivery', 'again', { key, parameters: { id } });
  await session.example('resendDeliveries', 'range', {
    key,
    body: { state: 'delivered', action: 'order:issued', limit: 2 },
  });
  return id;
}

async function aboutSigning(session: ExampleSession, key: Key, credentialID: string): Promise<void> {
  await session.example('getSigningInfo', 'info', { key, body: { lang: 'en-US' } });
  const { access_token } = await session.example('logInToSign', 'token', { key });
  await session.example('listSigningCredentials', 'credentials', { key, body: { credentialInfo: true } });
  const body = { credentialID, certificates: 'single', certInfo: true, authInfo: true };
  await session.example('getSigningCredential', 'credential', { key, body });
  const hashes = [digest('sha256', 'a document')];
  const authorized = await session.example('authorizeSigning', 'authorized', {
    key,
    body: authorization(credentialID, hashes),
  });
  await session.example('signHashes', 'signed', {
    key,
    body: { credentialID, SAD: authorized.SAD, hashes, signAlgo: ECDSA_SHA256 },
  });
  await session.example('revokeSigningToken', 'revoked', { key, body: { token: access_token } });
}

async function aboutCloudKeys(session: ExampleSession, key: Key): Promise<string> {
  const order = await newOrder(session.app, { product: 'document-signing', commonName: 'Acme Ltd' }, key);
  const certificate = { csr_from: 'sign-cloud-csc', sign_hash: 'sha256' };
  await session.example('reissueCertificate', 'cloudHeld', {
    key,
    parameters: { id: order.id },
    body: { certificate, sign_key_pin: CODE, sign_key_pin_tip: HINT },
  });
  const { cloud_keys } = await session.example('listCloudKeys', 'keys', { key });
  const [{ id }] = cloud_keys;
  await aboutSigning(session, key, id);
  const change = { pin: CODE, new_pin: 'Red-Lighthouse-48', new_pin_tip: 'the island' };
  await session.example('changeCloudKeyPin', 'changed', { key, parameters: { id }, body: change });
  await session.example('destroyCloudKey', 'destroyed', { key, parameters: { id }, body: { pin: change.new_pin } });
  return id;
}
