// A server without rules: it reads a request, verifies its CSR, signs a certificate's worth of bytes and answers. Which of
// that it does, what it asks before and which rows it writes, its steps say; requests that arrive together share a commit.
import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DatabaseSync } from 'node:sqlite';
import { DerReader } from '../src/adapters/der/reader.ts';
import { randomBytes } from '../src/adapters/seal/random.ts';

/** Most requests of one commit. */
const GROUP = 64;
const TO_BE_SIGNED_BYTES = 700;
const MAX_BODY_BYTES = 65_536;

export interface Reissue {
  readonly orderId: string;
  readonly certificateId: string;
  readonly toBeSigned: Uint8Array;
}

export interface SignedReissue extends Reissue {
  readonly der: Uint8Array;
}

/** What a server does for a request besides HTTP. */
export interface Steps {
  readonly signs: boolean;
  readonly ask?: (orderId: string) => Promise<void>;
  /** Durable before the signature. */
  readonly writeDown?: (reissue: Reissue) => void;
  /** Durable before the answer. */
  readonly finish?: (reissue: SignedReissue) => void;
}

type Answered<T extends Reissue = Reissue> = T & { readonly response: ServerResponse };

/** Returns the server's address. */
export async function serveBare(database: DatabaseSync, steps: Steps): Promise<string> {
  const { signs, ask, writeDown, finish } = steps;
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const finishAll = finish ? inGroups<SignedReissue>(database, finish, answer) : answer;
  const signOne = (reissue: Answered): void => {
    const signature = sign('sha256', reissue.toBeSigned, privateKey);
    finishAll({ ...reissue, der: Buffer.concat([reissue.toBeSigned, signature]) });
  };
  const prepare = writeDown ? inGroups<Reissue>(database, writeDown, signOne) : signOne;

  async function issue(text: string, url: string, response: ServerResponse): Promise<void> {
    const { csr } = JSON.parse(text).certificate;
    const orderId = url.split('/').at(-2) ?? '';
    const reissue = { orderId, certificateId: newId(), toBeSigned: randomBytes(TO_BE_SIGNED_BYTES), response };
    if (!signs) return answer(reissue);
    if (!isSelfSigned(csr)) return void response.writeHead(400).end();
    if (ask) await ask(orderId);
    prepare(reissue);
  }

  const server = createServer((request: IncomingMessage, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
      if (text.length > MAX_BODY_BYTES) request.destroy();
    });
    request.on('end', () => void issue(text, request.url ?? '', response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Collects what arrives in one turn of the event loop, writes it in one transaction, and goes on with each. */
function inGroups<T extends Reissue>(
  database: DatabaseSync,
  write: (reissue: T) => void,
  then: (reissue: Answered<T>) => void,
): (reissue: Answered<T>) => void {
  const [begin, commit] = ['begin immediate', 'commit'].map((one) => database.prepare(one));
  const waiting: Answered<T>[] = [];
  function commitGroup(): void {
    const group = waiting.splice(0, GROUP);
    if (waiting.length > 0) setImmediate(commitGroup);
    begin?.run();
    for (const one of group) write(one);
    commit?.run();
    for (const one of group) then(one);
  }
  return (reissue) => {
    if (waiting.push(reissue) === 1) setImmediate(commitGroup);
  };
}

function answer({ certificateId, response }: Answered): void {
  const text = JSON.stringify({ code: 'success', data: { certificate: { id: certificateId } } });
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': text.length }).end(text);
}

let ids = Date.now();
/** Unique and time-ordered, like the service's. */
export function newId(): string {
  ids += 1;
  return ids.toString(36).padStart(10, '0') + Buffer.from(randomBytes(8)).toString('hex');
}

function isSelfSigned(pem: string): boolean {
  const request = new DerReader(Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64')).sequence();
  const signed = request.any();
  request.any();
  const signature = request.bitString();
  const info = new DerReader(signed).sequence();
  info.integer();
  info.any();
  // As the service does it: Node imports PEM at less than half the cost of DER.
  const key = Buffer.from(info.any()).toString('base64');
  return verify(
    'sha256',
    signed,
    createPublicKey(`-----BEGIN PUBLIC KEY-----\n${key}\n-----END PUBLIC KEY-----\n`),
    signature,
  );
}
