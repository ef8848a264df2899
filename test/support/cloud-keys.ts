// Cloud-held keys for signing tests, created as customers do: by reissuing an order of a signing product.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { SignHash } from '../../src/domain/certificate/sign-hash.ts';
import type { Answer, Key, TestApp } from './app.ts';
import type { KeyKind } from './csr.ts';
import { certificate, newOrder, reissue } from './orders.ts';

export const CODE = 'Blue-Harbour-73';
export const HINT = 'where we met';

export interface CloudKey {
  /** A credential of the account that owns the key. */
  readonly key: Key;
  readonly orderId: string;
  /** The key's id, which is its credential id in the signing API. */
  readonly id: string;
  readonly certificateId: string;
  /** PEM. */
  readonly pem: string;
}

export interface CloudKeyOptions {
  readonly product?: string;
  /** Kind of the order's first key; the new key is of the same kind. */
  readonly like?: KeyKind;
  readonly signHash?: SignHash;
  readonly pin?: string;
  readonly hint?: string | undefined;
  readonly validityDays?: number;
}

export async function newCloudKey(app: TestApp, options: CloudKeyOptions = {}, owner?: Key): Promise<CloudKey> {
  const { product = 'document-signing', like = 'p256', signHash = 'sha256', pin = CODE, hint = HINT } = options;
  const order = await newOrder(app, { product, commonName: 'Acme Ltd', key: like }, owner);
  const answer = await reissue(app, order, {
    certificate: {
      csr_from: 'sign-cloud-csc',
      sign_hash: signHash,
      ...(options.validityDays && { validity_days: options.validityDays }),
    },
    sign_key_pin: pin,
    sign_key_pin_tip: hint,
  });
  assert.equal(answer.status, 200, answer.text);
  const certificateId = answer.body.data.certificate.id;
  const { cloud_key_id, pem } = await certificate(app, order, certificateId);
  return { key: order.key, orderId: order.id, id: cloud_key_id, certificateId, pem };
}

export const csc = (app: TestApp, method: string, key: Key | undefined, json: unknown = {}, headers = {}) =>
  app.call('POST', `/csc/v2/${method}`, { key, json, headers });

/** Digest of a message in base64, as the signing API expects it. */
export const digest = (hash: string, message: string | Uint8Array): string =>
  createHash(hash).update(message).digest('base64');

export const OID = {
  sha256: '2.16.840.1.101.3.4.2.1',
  sha384: '2.16.840.1.101.3.4.2.2',
  sha512: '2.16.840.1.101.3.4.2.3',
  sm3: '1.2.156.10197.1.401',
} as const satisfies Record<SignHash, string>;

export const ECDSA_SHA256 = '1.2.840.10045.4.3.2';

/** A valid body for `credentials/authorize`, with changes. */
export const authorization = (id: string, hashes: readonly string[], change: Record<string, unknown> = {}) => ({
  credentialID: id,
  numSignatures: hashes.length,
  hashes,
  hashAlgorithmOID: OID.sha256,
  authData: [{ id: 'PIN', value: CODE }],
  ...change,
});

export const withCode = (value: string) => ({ authData: [{ id: 'PIN', value }] });

export const authorize = (app: TestApp, { key, id }: CloudKey, hashes: readonly string[], change = {}) =>
  csc(app, 'credentials/authorize', key, authorization(id, hashes, change));

/** Authorizes, then signs. Defaults are for P-256 keys. */
export async function sign(app: TestApp, held: CloudKey, hashes: readonly string[], change = {}): Promise<Answer> {
  const authorized = await authorize(app, held, hashes, change);
  if (authorized.status !== 200) return authorized;
  const { SAD } = authorized.body;
  const body = { credentialID: held.id, SAD, hashes, signAlgo: ECDSA_SHA256, ...change };
  return await csc(app, 'signatures/signHash', held.key, body);
}

/** Asserts that the answer is an error in the format of the signing API, and nothing else. */
export function requireError(
  { status, body, headers }: Answer,
  expected: readonly [number, string, RegExp],
  what = '',
): void {
  assert.deepEqual(Object.keys(body).sort(), ['error', 'error_description'], what);
  assert.deepEqual([status, body.error], expected.slice(0, 2), `${what} ${body.error_description}`);
  assert.match(body.error_description, expected[2], what);
  assert.match(headers.get('x-request-id') ?? '', /^[0-9a-z]{26}$/);
}

export const INVALID = (phrase: RegExp) => [400, 'invalid_request', phrase] as const;
