// Orders over ACME in tests: place, publish what the challenges ask for, answer, finalize, download.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { implicit, octetString, oid, sequence, setOf, utf8String } from '../../src/adapters/der/writer.ts';
import { parseAddress } from '../../src/domain/egress/addresses.ts';
import { CHECK_LEASE_MS } from '../../src/domain/validation/check-result.ts';
import { type AcmeAnswer, AcmeClient, type Json, newAcmeClient } from './acme.ts';
import type { TestApp } from './app.ts';
import { attributesOf, csr, type KeyPair, newKeyPair, name as rdn } from './csr.ts';
import { type DomainApp, page } from './domain-app.ts';

export const b64der = (der: Uint8Array): string => Buffer.from(der).toString('base64url');

const altName = (name: string): Uint8Array => {
  const address = parseAddress(name);
  return address ? implicit(7, octetString(address)) : implicit(2, octetString(Buffer.from(name)));
};

/** A CSR for these names, the first also as common name, base64url. */
export function acmeCsr(names: readonly string[], key: KeyPair = newKeyPair('p256'), commonName = names[0]): string {
  const extension = sequence([oid('2.5.29.17'), octetString(sequence(names.map(altName)))]);
  const request = sequence([oid('1.2.840.113549.1.9.14'), setOf([sequence([extension])])]);
  const subject = sequence(commonName === undefined ? [] : [rdn('2.5.4.3', utf8String(commonName))]);
  return b64der(csr({ key, subject, attributes: attributesOf(request) }));
}

/** Another client with the same account, and without a nonce. */
export function sameAccount({ origin, key, kid }: AcmeClient): AcmeClient {
  const client = new AcmeClient(origin, key);
  client.kid = kid;
  return client;
}

export const dnsIdentifiers = (names: readonly string[]) => names.map((value) => ({ type: 'dns', value }));

export const MOST_MS = 20_000;

/** Reads a resource until `isDone`. */
export async function poll(
  client: AcmeClient,
  url: string,
  isDone: (body: Json) => boolean = ({ status }) => status !== 'pending' && status !== 'processing',
): Promise<AcmeAnswer> {
  const end = performance.now() + MOST_MS;
  for (;;) {
    const answer = await client.post(url);
    assert.equal(answer.status, 200, answer.text);
    if (isDone(answer.body)) return answer;
    assert.ok(performance.now() < end, `${url} stays ${answer.text}`);
    await sleep(5);
  }
}

export interface AcmeOrderUrls {
  readonly url: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape, and assert what they find.
  readonly body: any;
}

export async function placed(client: AcmeClient, names: readonly string[], more: Json = {}): Promise<AcmeOrderUrls> {
  const { newOrder } = await client.directory();
  const answer = await client.post(newOrder, { identifiers: dnsIdentifiers(names), ...more });
  assert.equal(answer.status, 201, answer.text);
  return { url: answer.headers.get('location') ?? '', body: answer.body };
}

export const keyAuthorization = (client: AcmeClient, token: string): string => `${token}.${client.key.thumbprint}`;

/** Publishes what the challenge asks for. Several values of one TXT record stay beside each other. */
export function publish(world: DomainApp, client: AcmeClient, host: string, challenge: Json): void {
  const text = keyAuthorization(client, String(challenge.token));
  if (challenge.type === 'http-01') {
    world.dns.set(host, 'A', ['127.0.0.1']);
    world.files.set(`${host}/.well-known/acme-challenge/${challenge.token}`, page(text));
    return;
  }
  assert.equal(challenge.type, 'dns-01');
  world.dns.set(`_acme-challenge.${host}`, 'TXT', [createHash('sha256').update(text).digest('base64url')]);
}

/** Proves every pending authorization of the order by this challenge. Returns the order, ready. */
export async function proven(
  world: DomainApp,
  client: AcmeClient,
  { url, body }: AcmeOrderUrls,
  type = 'dns-01',
): Promise<AcmeOrderUrls> {
  for (const authorization of body.authorizations) {
    const { body: found } = await client.post(authorization);
    if (found.status === 'valid') continue;
    const challenge = found.challenges.find((one: Json) => one.type === type);
    publish(world, client, found.identifier.value, challenge);
    const answered = await client.post(challenge.url, {});
    assert.equal(answered.status, 200, answered.text);
    const { body: done } = await poll(client, authorization);
    assert.equal(done.status, 'valid', JSON.stringify(done));
  }
  return { url, body: (await client.post(url)).body };
}

/** Finalizes an order that is ready, and waits until it is valid. */
export async function finalized(
  client: AcmeClient,
  { url, body }: AcmeOrderUrls,
  key?: KeyPair,
): Promise<AcmeOrderUrls> {
  const names = body.identifiers.map(({ value }: { value: string }) => value);
  const answer = await client.post(body.finalize, { csr: acmeCsr(names, key) });
  assert.equal(answer.status, 200, answer.text);
  return { url, body: (await poll(client, url)).body };
}

/** The certificate of a valid order, PEM, the leaf first. */
export async function downloaded(client: AcmeClient, { body }: AcmeOrderUrls): Promise<string[]> {
  const { status, text } = await client.post(body.certificate);
  assert.equal(status, 200, text);
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g) ?? [];
}

export const issued = async (
  world: DomainApp,
  client: AcmeClient,
  names: readonly string[],
  more: Json = {},
): Promise<AcmeOrderUrls> => await finalized(client, await proven(world, client, await placed(client, names, more)));

/** What a process leaves that dies after it has taken the answer to a challenge: the answer, and its lease. */
export async function withLostAnswer(app: TestApp, given?: AcmeClient, name = 'lost.example.com') {
  const client = given ?? (await newAcmeClient(app));
  const { body } = await placed(client, [name]);
  const { authorizations, sharedNow } = app.app.store;
  const [acmeAccountId = '', id = ''] = [client.kid, body.authorizations[0]].map((url) => url.split('/').at(-1));
  const found = (await authorizations.find(acmeAccountId, id)) ?? assert.fail();
  const answered = { method: 'dns-01', dueAt: sharedNow() + CHECK_LEASE_MS } as const;
  assert.ok(await authorizations.save({ ...found, state: 'pending', answered }, { state: 'pending', dueAt: null }));
  return { id, acmeAccountId, url: String(body.authorizations[0]), token: found.token, name };
}

/** Returns what must work once the lease, changed as given, is repaired: the challenge is validated. */
export async function leaveAnswer(app: TestApp, change: (id: string) => Promise<void>): Promise<() => Promise<void>> {
  const { id, acmeAccountId } = await withLostAnswer(app);
  await change(id);
  return async () => {
    const end = performance.now() + MOST_MS;
    while ((await app.app.store.authorizations.find(acmeAccountId, id))?.state === 'pending') {
      assert.ok(performance.now() < end, 'it is not validated');
      await app.issuance.acmeAuthorizations.validateDue();
    }
  };
}
