// A raw ACME client: every JWS is put together here, so that a test can send one that no library would.
import assert from 'node:assert/strict';
import { createHash, createHmac, createPublicKey, type KeyObject, sign } from 'node:crypto';
import type { NewBinding } from '../../src/usecases/acme/manage-acme.ts';
import type { TestApp } from './app.ts';
import { keyPair, newKeyPair } from './csr.ts';

export type Json = Readonly<Record<string, unknown>>;

export const b64 = (value: string | Uint8Array): string => Buffer.from(value as string).toString('base64url');
export const b64json = (value: unknown): string => b64(JSON.stringify(value));

/** What signs with a key, as JWS has it. */
interface Scheme {
  readonly alg: string;
  readonly digest: string | null;
  readonly dsaEncoding?: 'ieee-p1363';
}
const SCHEMES = {
  p256: { alg: 'ES256', digest: 'sha256', dsaEncoding: 'ieee-p1363' },
  p384: { alg: 'ES384', digest: 'sha384', dsaEncoding: 'ieee-p1363' },
  rsa: { alg: 'RS256', digest: 'sha256' },
  ed25519: { alg: 'EdDSA', digest: null },
} as const satisfies Record<string, Scheme>;
export type AcmeKeyType = keyof typeof SCHEMES;

export interface AcmeKey {
  readonly type: AcmeKeyType;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly jwk: Json;
  readonly alg: string;
  readonly thumbprint: string;
}

/** RSA keys take long to make: all files share one, so that a store can have one account with it. */
export function newAcmeKey(type: AcmeKeyType = 'p256'): AcmeKey {
  const { privateKey } = type === 'rsa' ? keyPair('rsa2048') : newKeyPair(type);
  return acmeKey(type, privateKey, createPublicKey(privateKey));
}

export function acmeKey(type: AcmeKeyType, privateKey: KeyObject, publicKey: KeyObject): AcmeKey {
  const jwk = publicKey.export({ format: 'jwk' }) as Json;
  const members = Object.entries(jwk).sort(([one], [other]) => (one < other ? -1 : 1));
  const thumbprint = createHash('sha256')
    .update(JSON.stringify(Object.fromEntries(members)))
    .digest('base64url');
  return { type, privateKey, publicKey, jwk, alg: SCHEMES[type].alg, thumbprint };
}

export function signature({ type, privateKey }: AcmeKey, input: string): string {
  const { digest, ...options }: Scheme = SCHEMES[type];
  const { dsaEncoding } = options;
  return b64(sign(digest, Buffer.from(input), { key: privateKey, ...(dsaEncoding && { dsaEncoding }) }));
}

export interface SentJws {
  readonly protected: string;
  readonly payload: string;
  readonly signature: string;
}

/** Of parts as they are sent, whatever they hold. */
export const signedParts = (key: AcmeKey, head: string, body: string): SentJws => ({
  protected: head,
  payload: body,
  signature: signature(key, `${head}.${body}`),
});

/** `payload` undefined: POST-as-GET. */
export const jws = (key: AcmeKey, header: Json, payload?: unknown): SentJws =>
  signedParts(key, b64json(header), payload === undefined ? '' : b64json(payload));

/** The inner JWS of an external account binding. */
export function binding(eab: Eab, url: string, jwk: unknown, header: Json = {}) {
  const alg = String(header.alg ?? 'HS256');
  const head = b64json({ alg, kid: eab.kid, url, ...header });
  const body = b64json(jwk);
  const digest = alg.replace('HS', 'sha');
  const mac = createHmac(/^sha(256|384|512)$/.test(digest) ? digest : 'sha256', Buffer.from(eab.macKey, 'base64url'));
  return { protected: head, payload: body, signature: mac.update(`${head}.${body}`).digest('base64url') };
}

export interface Eab {
  readonly kid: string;
  readonly macKey: string;
}

/** A binding of a tenant, as the operator makes it. */
export async function newEab(
  { app }: Pick<TestApp, 'app'>,
  accountId: string,
  rights: Partial<NewBinding> = {},
): Promise<Eab> {
  const { binding: made, macKey } = await app.acmeAccess.createBinding({
    ...{ accountId, name: '', products: null, nameSuffixes: null, revokesReplaced: false },
    ...{ isReusable: false, expiresAt: null },
    ...rights,
  });
  return { kid: made.id, macKey: macKey.reveal() };
}

export interface AcmeAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape, and assert what they find.
  readonly body: any;
}

export async function answerOf(response: Response): Promise<AcmeAnswer> {
  const text = await response.text();
  const isJson = /^application\/(problem\+)?json/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined };
}

/** The type of a problem document, without its prefix. */
export function problemOf({ body, headers, status }: AcmeAnswer): string {
  assert.equal(headers.get('content-type'), 'application/problem+json');
  assert.equal(body.status, status);
  const [, type = ''] = /^urn:ietf:params:acme:error:(\w+)$/.exec(body.type) ?? [];
  return type;
}

/** What a request has instead of what an honest client sends. */
export interface Bend {
  /** Merged into the protected header; undefined removes a member. */
  readonly header?: Json;
  /** Instead of the JWS. */
  readonly body?: string | ((jws: SentJws, header: Json) => unknown);
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client with one key. Nonces are taken from the last answer, as clients do. */
export class AcmeClient {
  readonly origin: string;
  readonly directoryPath: string;
  key: AcmeKey;
  /** URL of the account, once there is one. */
  kid: string | undefined;
  #nonce: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: as in AcmeAnswer.
  #directory: any;

  constructor(origin: string, key: AcmeKey = newAcmeKey(), directoryPath = '/acme/directory') {
    this.origin = origin;
    this.key = key;
    this.directoryPath = directoryPath;
  }

  // biome-ignore lint/suspicious/noExplicitAny: as in AcmeAnswer.
  async directory(): Promise<any> {
    this.#directory ??= (await answerOf(await fetch(this.origin + this.directoryPath))).body;
    return this.#directory;
  }

  async nonce(): Promise<string> {
    const { headers } = await fetch(`${this.origin}/acme/new-nonce`, { method: 'HEAD' });
    return headers.get('replay-nonce') ?? assert.fail('no nonce');
  }

  /** Call when the clock has moved: nonces expire. */
  forgetNonce(): void {
    this.#nonce = undefined;
  }

  /** Posts a JWS signed by the account, or by the key if there is no account yet. */
  async post(url: string, payload?: unknown, bend: Bend = {}): Promise<AcmeAnswer> {
    const signer = this.kid === undefined ? { jwk: this.key.jwk } : { kid: this.kid };
    return await this.postAs(signer, url, payload, bend);
  }

  async postAs(signer: Json, url: string, payload: unknown, bend: Bend = {}): Promise<AcmeAnswer> {
    const nonce = this.#nonce ?? (await this.nonce());
    this.#nonce = undefined;
    const header = { alg: this.key.alg, nonce, url, ...signer, ...bend.header };
    const signed = jws(this.key, header, payload);
    const { body = signed } = bend;
    const sent = typeof body === 'function' ? body(signed, header) : body;
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/jose+json', ...bend.headers },
      body: typeof sent === 'string' ? sent : JSON.stringify(sent),
    });
    this.#nonce = response.headers.get('replay-nonce') ?? undefined;
    return await answerOf(response);
  }

  /** Creates the account of the key. */
  async register(eab: Eab | undefined, payload: Json = {}): Promise<AcmeAnswer> {
    const { newAccount: url } = await this.directory();
    const bound = eab && { externalAccountBinding: binding(eab, url, this.key.jwk) };
    const answer = await this.postAs({ jwk: this.key.jwk }, url, { ...bound, ...payload });
    if (answer.status === 201 || answer.status === 200) this.kid = answer.headers.get('location') ?? undefined;
    return answer;
  }
}

/** A client with an account of the tenant, of a new one by default. */
export async function newAcmeClient(
  app: TestApp,
  { accountId, rights, key }: { accountId?: string; rights?: Partial<NewBinding>; key?: AcmeKey } = {},
): Promise<AcmeClient & { kid: string }> {
  const tenant = accountId ?? (await app.newKey()).accountId;
  const client = new AcmeClient(app.url, key);
  const answer = await client.register(await newEab(app, tenant, rights));
  assert.equal(answer.status, 201, answer.text);
  return client as AcmeClient & { kid: string };
}
