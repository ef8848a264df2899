// An independent verifier: fetches CRLs and OCSP responses from the URLs in certificates, parses them strictly, and
// verifies every signature with node:crypto, or with our SM2. It shares only the DER reader with the code under test.
import assert from 'node:assert/strict';
import { createHash, verify, X509Certificate } from 'node:crypto';
import { DerReader } from '../../src/adapters/der/reader.ts';
import { enumerated, explicit, integer, NULL, octetString, oid, sequence } from '../../src/adapters/der/writer.ts';
import { openSm2PublicKey, sm2Verify } from '../../src/adapters/sm2/sm2.ts';
import type { TestApp } from './app.ts';

export const REASONS = {
  1: 'key_compromise',
  3: 'affiliation_changed',
  4: 'superseded',
  5: 'cessation_of_operation',
  9: 'privilege_withdrawn',
} as const;

export const derOf = (pem: string): Buffer => Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
export const pems = (text: string): string[] =>
  text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? [];

const ALGORITHMS: Readonly<Record<string, string>> = {
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.156.10197.1.501': 'sm3',
};

/** The SubjectPublicKeyInfo of a certificate, parsed by hand: node:crypto does not read SM2 certificates. */
export function partsOf(certificate: Uint8Array) {
  const reader = new DerReader(certificate).sequence().sequence();
  reader.context(0);
  const serial = Buffer.from(reader.positive()).toString('hex');
  reader.any();
  const issuer = reader.any();
  reader.any();
  const subject = reader.any();
  return { serial, issuer, subject, spki: reader.any() };
}

function requireSigned(signed: Uint8Array, algorithm: DerReader, signature: Uint8Array, spki: Uint8Array): void {
  const hash = ALGORITHMS[algorithm.oid()];
  assert.ok(hash, 'an unexpected signature algorithm');
  const isRight =
    hash === 'sm3'
      ? sm2Verify(openSm2PublicKey(spki), signed, signature)
      : verify(hash, signed, { key: Buffer.from(spki), format: 'der', type: 'spki' }, signature);
  assert.ok(isRight, 'the signature does not verify');
}

function momentIn(reader: DerReader): number {
  const { tag, content } = reader.primitive();
  const text = Buffer.from(content).toString('latin1');
  const full = tag === 0x17 ? `${Number(text.slice(0, 2)) < 50 ? '20' : '19'}${text}` : text;
  assert.match(full, /^\d{14}Z$/);
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full)!;
  const [year, month, day, hour, minute, second] = parts.map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

function extensionsIn(list: DerReader): Map<string, { isCritical: boolean; value: Uint8Array }> {
  const found = new Map<string, { isCritical: boolean; value: Uint8Array }>();
  while (!list.isAtEnd) {
    const one = list.sequence();
    const id = one.oid();
    const next = one.primitive();
    const isCritical = next.tag === 1;
    found.set(id, { isCritical, value: isCritical ? one.octetString() : next.content });
    one.end();
  }
  return found;
}

/** All URLs anywhere in the extension: enough to compare, and independent of its nesting. */
const addressesIn = (value: Uint8Array): string[] =>
  Buffer.from(value)
    .toString('latin1')
    .match(/http:\/\/[\x21-\x7e]+?\.crl/g) ?? [];

export interface ReadCrl {
  readonly number: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly addresses: readonly string[];
  readonly revoked: ReadonlyMap<string, { at: number; reason: string }>;
}

export function readCrl(der: Uint8Array, issuerCertificate: Uint8Array): ReadCrl {
  const outer = new DerReader(der);
  const list = outer.sequence();
  outer.end();
  const signed = list.any();
  const { spki, subject } = partsOf(issuerCertificate);
  requireSigned(signed, list.sequence(), list.bitString(), spki);
  list.end();
  const content = new DerReader(signed).sequence();
  assert.deepEqual([...content.integer()], [1], 'version 2');
  content.any();
  assert.deepEqual(Buffer.from(content.any()), Buffer.from(subject), 'the issuer name');
  const [thisUpdate, nextUpdate] = [momentIn(content), momentIn(content)];
  const revoked = new Map<string, { at: number; reason: string }>();
  let extensions = content.context(0);
  if (!extensions) {
    const entries = content.sequence();
    assert.ok(!entries.isAtEnd, 'an empty revokedCertificates must be absent');
    while (!entries.isAtEnd) {
      const entry = entries.sequence();
      const serial = Buffer.from(entry.positive()).toString('hex');
      const at = momentIn(entry);
      const reason = extensionsIn(entry.sequence()).get('2.5.29.21')!.value;
      entry.end();
      assert.ok(!revoked.has(serial), `${serial} is listed twice`);
      revoked.set(serial, { at, reason: REASONS[reason[2] as keyof typeof REASONS] });
    }
    extensions = content.context(0)!;
  }
  const found = extensionsIn(extensions.sequence());
  content.end();
  const point = found.get('2.5.29.28');
  assert.ok(!point || point.isCritical, 'the issuing distribution point is critical');
  assert.ok(found.has('2.5.29.35'), 'the authority key identifier');
  const number = Number(
    BigInt(`0x${Buffer.from(new DerReader(found.get('2.5.29.20')!.value).integer()).toString('hex')}`),
  );
  return { number, thisUpdate, nextUpdate, addresses: point ? addressesIn(point.value) : [], revoked };
}

/** The URL of the CRL in a certificate; its port is the configured one, 0 in tests. */
export const crlAddressIn = (certificate: Uint8Array): string =>
  addressesIn(certificate)[0] ?? assert.fail('a certificate without the address of a list');

export async function fetchCrl(app: Pick<TestApp, 'url'>, certificate: Uint8Array, headers = {}) {
  const { pathname } = new URL(crlAddressIn(certificate));
  const response = await fetch(app.url + pathname, { headers });
  return { status: response.status, headers: response.headers, der: Buffer.from(await response.arrayBuffer()) };
}

/** Fetches the CRL of a certificate, and asserts that it covers that certificate. */
export async function crlOf(app: Pick<TestApp, 'url'>, certificate: Uint8Array, issuer: Uint8Array): Promise<ReadCrl> {
  const { status, headers, der } = await fetchCrl(app, certificate);
  assert.equal(status, 200);
  assert.equal(headers.get('content-type'), 'application/pkix-crl');
  const list = readCrl(der, issuer);
  const address = crlAddressIn(certificate);
  // A complete CRL has no address of its own, and its certificates name no other.
  const isCovered = list.addresses.length === 0 ? address.endsWith('/0.crl') : list.addresses.includes(address);
  assert.ok(isCovered, 'the CRL is for another shard');
  return list;
}

const HASH_IDS = { sha1: '1.3.14.3.2.26', sha256: '2.16.840.1.101.3.4.2.1', sm3: '1.2.156.10197.1.401' } as const;
export type IdHash = keyof typeof HASH_IDS;

function keyBits(spki: Uint8Array): Uint8Array {
  const reader = new DerReader(spki).sequence();
  reader.any();
  return reader.bitString();
}

export function certIdOf(serial: string, issuer: Uint8Array, hash: IdHash = 'sha1'): Uint8Array {
  const { subject, spki } = partsOf(issuer);
  const digest = (bytes: Uint8Array) => octetString(createHash(hash).update(bytes).digest());
  return sequence([
    sequence([oid(HASH_IDS[hash]), NULL]),
    digest(subject),
    digest(keyBits(spki)),
    integer(Buffer.from(serial, 'hex')),
  ]);
}

export function ocspRequest(certIds: readonly Uint8Array[], nonce?: Uint8Array): Uint8Array {
  const extension = (value: Uint8Array) =>
    explicit(2, sequence([sequence([oid('1.3.6.1.5.5.7.48.1.2'), octetString(octetString(value))])]));
  return sequence([sequence([sequence(certIds.map((one) => sequence([one]))), ...(nonce ? [extension(nonce)] : [])])]);
}

export interface ReadOcsp {
  readonly statuses: readonly { status: 'good' | 'revoked' | 'unknown'; at?: number; reason?: string }[];
  readonly nonce: Uint8Array | undefined;
  readonly producedAt: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly responder: X509Certificate;
  readonly responderSerial: string;
}

/** The OCSP error status, or undefined for a successful response. */
export const ocspErrorOf = (der: Uint8Array): number | undefined => {
  const [status = -1] = new DerReader(der).sequence().primitive().content;
  return status === 0 ? undefined : status;
};

export function readOcsp(der: Uint8Array, issuer: Uint8Array, asked: readonly Uint8Array[]): ReadOcsp {
  const outer = new DerReader(der).sequence();
  assert.deepEqual([...outer.any()], [...enumerated(0)], 'a successful response');
  const typed = outer.context(0)!.sequence();
  assert.equal(typed.oid(), '1.3.6.1.5.5.7.48.1.1');
  const basic = new DerReader(typed.octetString()).sequence();
  const signed = basic.any();
  const [algorithm, signature] = [basic.sequence(), basic.bitString()];
  const certificates = basic.context(0)!.sequence();
  const certificate = certificates.any();
  certificates.end();
  basic.end();
  const parts = partsOf(certificate);
  requireSigned(signed, algorithm, signature, parts.spki);
  // The responder certificate was issued directly by the CA.
  const whole = new DerReader(certificate).sequence();
  const delegated = whole.any();
  requireSigned(delegated, whole.sequence(), whole.bitString(), partsOf(issuer).spki);
  assert.deepEqual(Buffer.from(parts.issuer), Buffer.from(partsOf(issuer).subject));
  const data = new DerReader(signed).sequence();
  // By name, or by the SHA-1 of the key.
  const byName = data.context(1);
  if (byName) assert.deepEqual(Buffer.from(byName.any()), Buffer.from(parts.subject));
  else {
    const keyHash = data.context(2)!.octetString();
    assert.deepEqual(Buffer.from(keyHash), createHash('sha1').update(keyBits(parts.spki)).digest());
  }
  const producedAt = momentIn(data);
  const list = data.sequence();
  const statuses: ReadOcsp['statuses'][number][] = [];
  let [thisUpdate, nextUpdate] = [0, 0];
  for (const certId of asked) {
    const one = list.sequence();
    assert.deepEqual(Buffer.from(one.any()), Buffer.from(certId), 'the response is to another request');
    const revoked = one.context(1);
    if (revoked) {
      const at = momentIn(revoked);
      const reason = revoked.context(0)!.primitive().content[0] as keyof typeof REASONS;
      statuses.push({ status: 'revoked', at, reason: REASONS[reason] });
    } else {
      const { tag } = one.primitive();
      statuses.push({ status: tag === 0x80 ? 'good' : tag === 0x82 ? 'unknown' : assert.fail(String(tag)) });
    }
    thisUpdate = momentIn(one);
    nextUpdate = momentIn(one.context(0)!);
    one.end();
  }
  list.end();
  const extensions = data.context(1);
  const nonce = extensions && extensionsIn(extensions.sequence()).get('1.3.6.1.5.5.7.48.1.2')?.value;
  data.end();
  return {
    statuses,
    producedAt,
    thisUpdate,
    nextUpdate,
    nonce: nonce && new DerReader(nonce).octetString(),
    responder: new X509Certificate(certificate),
    responderSerial: parts.serial,
  };
}

export async function postOcsp(app: Pick<TestApp, 'url'>, request: Uint8Array) {
  const response = await fetch(`${app.url}/ocsp`, {
    method: 'POST',
    headers: { 'content-type': 'application/ocsp-request' },
    body: Buffer.from(request),
  });
  return { status: response.status, headers: response.headers, der: Buffer.from(await response.arrayBuffer()) };
}

/** The OCSP status of one serial number. */
export async function ocspStatus(app: Pick<TestApp, 'url'>, serial: string, issuer: Uint8Array, hash?: IdHash) {
  const certId = certIdOf(serial, issuer, hash);
  const { status, headers, der } = await postOcsp(app, ocspRequest([certId]));
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/ocsp-response']);
  return readOcsp(der, issuer, [certId]).statuses[0]!;
}
