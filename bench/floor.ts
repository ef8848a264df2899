// The floor: a server without rules that does what every durable reissue must do, and nothing else. It reads the request,
// verifies the CSR, signs a certificate's worth of bytes, and answers when one row is on disk; rows that arrive together
// share a commit.
import { createPublicKey, generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DerReader } from '../src/adapters/der/reader.ts';

/** Most rows of one commit. */
const GROUP = 64;
const TO_BE_SIGNED_BYTES = 700;
const MAX_BODY_BYTES = 65_536;

interface Waiting {
  readonly response: ServerResponse;
  readonly certificate: Uint8Array;
}

async function serveFloor(folder: string): Promise<string> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const database = new DatabaseSync(join(folder, 'floor.db'));
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 4000');
  database.exec('create table certificate (id text primary key, der blob not null)');
  const [begin, insert, commit] = ['begin immediate', 'insert into certificate values (?, ?)', 'commit'].map((one) =>
    database.prepare(one),
  );
  const waiting: Waiting[] = [];

  function commitGroup(): void {
    const group = waiting.splice(0, GROUP);
    if (waiting.length > 0) setImmediate(commitGroup);
    const ids = group.map(() => randomBytes(16).toString('hex'));
    begin?.run();
    for (const [index, { certificate }] of group.entries()) insert?.run(ids[index] ?? '', certificate);
    commit?.run();
    for (const [index, { response }] of group.entries()) {
      const text = JSON.stringify({ code: 'success', data: { certificate: { id: ids[index] } } });
      const headers = { 'Content-Type': 'application/json', 'Content-Length': text.length };
      response.writeHead(200, headers).end(text);
    }
  }

  function issue(text: string, response: ServerResponse): void {
    if (!isSelfSigned(JSON.parse(text).certificate.csr)) return void response.writeHead(400).end();
    const toBeSigned = randomBytes(TO_BE_SIGNED_BYTES);
    const certificate = Buffer.concat([toBeSigned, sign('sha256', toBeSigned, privateKey)]);
    if (waiting.push({ response, certificate }) === 1) setImmediate(commitGroup);
  }

  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
      if (text.length > MAX_BODY_BYTES) request.destroy();
    });
    request.on('end', () => issue(text, response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function isSelfSigned(pem: string): boolean {
  const request = new DerReader(Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64')).sequence();
  const signed = request.any();
  request.any();
  const signature = request.bitString();
  const info = new DerReader(signed).sequence();
  info.integer();
  info.any();
  const key = createPublicKey({ key: Buffer.from(info.any()), format: 'der', type: 'spki' });
  return verify('sha256', signed, key, signature);
}

if (import.meta.main) process.send?.(await serveFloor(process.argv[2] ?? '.'));
