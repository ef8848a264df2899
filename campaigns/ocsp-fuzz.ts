// Fuzzes /ocsp: no request may crash the service, cause a 5xx, or cause a large response. Valid requests are mutated: bytes,
// lengths, elements, paths; by POST and by GET. Every response must be valid OCSP and small, and must never say good for a
// serial number that was not issued.
import { randomBytes, randomInt } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DerReader } from '../src/adapters/der/reader.ts';
import { raw, sequence } from '../src/adapters/der/writer.ts';
import { readConfig } from '../src/config/config.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import { certIdOf, ocspRequest, partsOf } from '../test/support/status.ts';
import type { Campaign } from './campaign.ts';
import { placeOrders } from './reissues.ts';
import { startService, withStore } from './service.ts';

const LANES = 32;
const MAX_ANSWER_BYTES = 8_192;
const MAX_SENT_BYTES = 65_536;
/** Longer bodies are refused while being sent; the refusal may be lost with the connection. */
const READ_BYTES = 8_192;
const MAX_BROKEN = 20;
const MAX_SHOWN = 1_000;
const ANSWER_MS = 30_000;
/** Allowed statuses: OCSP, a body too large, an invalid path, a method or path without a route. */
const STATUSES = new Set([200, 400, 404, 405, 413, 414, 431]);

interface Sent {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: Uint8Array;
  /** A valid request for a serial number that was issued. */
  readonly isKnown: boolean;
}
interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer;
}

const oneOf = <T>(list: readonly T[]): T => list[randomInt(list.length)]!;

/** Applies one to three mutations. */
function mutate(valid: Uint8Array): Uint8Array {
  let bytes = Buffer.from(valid);
  for (let left = randomInt(1, 4); left > 0; left -= 1) bytes = oneOf(MUTATIONS)(bytes);
  return bytes.subarray(0, MAX_SENT_BYTES);
}

const MUTATIONS: readonly ((bytes: Buffer) => Buffer<ArrayBuffer>)[] = [
  (bytes) => {
    const copy = Buffer.from(bytes);
    if (copy.length > 0) copy[randomInt(copy.length)] = randomInt(256);
    return copy;
  },
  (bytes) => Buffer.from(bytes.subarray(0, randomInt(bytes.length + 1))),
  (bytes) => Buffer.concat([bytes, randomBytes(randomInt(1, 64))]),
  (bytes) => {
    const at = randomInt(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), randomBytes(randomInt(1, 8)), bytes.subarray(at)]);
  },
  (bytes) => {
    const at = randomInt(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(Math.min(bytes.length, at + randomInt(1, 16)))]);
  },
  (bytes) => Buffer.from(sequence([bytes])),
  (bytes) => Buffer.from(raw(randomInt(256), bytes)),
  () => randomBytes(randomInt(600)),
  (bytes) => Buffer.concat(Array.from({ length: randomInt(2, 40) }, () => bytes)),
  () => Buffer.alloc(randomInt(12_000), oneOf([0x30, 0x80, 0xff, 0x00])),
];

function sentOf(valid: Uint8Array, isKnown: boolean): Sent {
  const body = randomInt(10) === 0 ? valid : mutate(valid);
  const isUnchanged = isKnown && body === valid;
  if (randomInt(2) === 0) return { method: 'POST', path: '/ocsp', body, isKnown: isUnchanged };
  const base64 = Buffer.from(body).toString('base64');
  const [path, isWhole] = oneOf<readonly [string, boolean]>([
    [encodeURIComponent(base64), true],
    [base64, true],
    [base64.replaceAll('/', '%2f'), true],
    [Buffer.from(body).toString('base64url'), true],
    [`%${base64}`, false],
    [`${base64}/`, false],
    [base64.slice(0, randomInt(base64.length + 1)), false],
  ]);
  // Stay below the limit of the header block, which is not under test.
  return { method: 'GET', path: `/ocsp/${path.slice(0, 12_000)}`, isKnown: isUnchanged && isWhole };
}

function send(url: string, agent: Agent, { method, path, body }: Sent): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const sent = request(url + path, { method, agent, timeout: ANSWER_MS }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', () => {});
      response.on('close', () =>
        resolve({
          status: response.statusCode ?? 0,
          type: response.headers['content-type'] ?? '',
          body: Buffer.concat(chunks),
        }),
      );
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.on('error', () => resolve(undefined));
    if (body) sent.setHeader('content-type', 'application/ocsp-request');
    sent.end(body);
  });
}

/** The status of each serial number, or an OCSP error status; undefined if the response is not OCSP. */
function statusesIn(der: Uint8Array): { status: string; serial: string }[] | undefined {
  const outer = new DerReader(der).sequence();
  const [status] = outer.primitive().content;
  if (status !== 0) return outer.isAtEnd ? [{ status: `error ${status}`, serial: '' }] : undefined;
  const typed = outer.context(0)?.sequence();
  if (!typed) return undefined;
  typed.oid();
  const data = new DerReader(typed.octetString()).sequence().sequence();
  data.context(2);
  data.primitive();
  const list = data.sequence();
  const said: { status: string; serial: string }[] = [];
  while (!list.isAtEnd) {
    const one = list.sequence();
    const certId = one.sequence();
    for (let skipped = 0; skipped < 3; skipped += 1) certId.any();
    const serial = Buffer.from(certId.integer()).toString('hex');
    said.push({ serial, status: one.context(1) ? 'revoked' : one.primitive().tag === 0x80 ? 'good' : 'unknown' });
  }
  return said;
}

function faultIn(
  sent: Sent,
  answer: Answer | undefined,
  issued: string,
  counts: Map<string, number>,
): string | undefined {
  const count = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1);
  if (!answer && (sent.body?.length ?? 0) > READ_BYTES) return count('too long, and cut off') as undefined;
  if (!answer) return 'no answer';
  if (!STATUSES.has(answer.status)) return `status ${answer.status}: ${answer.body.toString('latin1', 0, 200)}`;
  if (answer.body.length > MAX_ANSWER_BYTES) return `an answer of ${answer.body.length} bytes`;
  if (sent.isKnown && answer.status !== 200) return `a valid request was answered HTTP ${answer.status}`;
  if (answer.status !== 200) return count(`HTTP ${answer.status}`) as undefined;
  if (answer.type !== 'application/ocsp-response') return `a 200 of type ${answer.type}`;
  const said = statusesIn(answer.body);
  if (!said) return 'an answer that is not OCSP';
  for (const { status } of said) count(status);
  if (said.some(({ status, serial }) => status === 'good' && serial !== issued))
    return 'good for a serial number that was not issued';
  if (sent.isKnown && said[0]?.status !== 'good') return `a valid request was answered ${said[0]?.status}`;
  return undefined;
}

const shown = ({ path, body }: Sent): string =>
  `${path} ${Buffer.from(body ?? []).toString('hex')}`.slice(0, MAX_SHOWN);

export const ocspFuzz: Campaign = {
  about: 'N mutated requests to /ocsp: no crash, no 5xx, small responses',
  defaultN: 100_000,
  async run(n, print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-ocsp-fuzz-'));
    const settings = { RESEAL_DATA_DIR: folder.path };
    const [order] = await placeOrders(settings, 1);
    const { issuer, serial } = await withStore(settings, async (app) => {
      const issuance = await openIssuance(app, readConfig(settings).config, Date.now);
      const found = order && (await app.store.certificates.find(order.key.accountId, order.certificateId));
      await using _ = { [Symbol.asyncDispose]: () => issuance.close() };
      if (found?.state !== 'issued') throw new Error('the certificate was not issued');
      const [issuer] = await issuance.authority.chainOf(found.preparation.issuerId);
      if (!issuer) throw new Error('the issuer has no certificate');
      return { issuer, serial: partsOf(found.der).serial };
    });
    const valid = [
      [ocspRequest([certIdOf(serial, issuer)]), true],
      [ocspRequest([certIdOf(serial, issuer, 'sha256')], randomBytes(32)), true],
      [ocspRequest([certIdOf('41'.repeat(16), issuer)]), false],
    ] as const;
    const service = await startService(settings);
    const agent = new Agent({ keepAlive: true, maxSockets: LANES });
    const broken: string[] = [];
    const counts = new Map<string, number>();
    let left = n;
    const lane = async () => {
      while (left > 0 && broken.length < MAX_BROKEN) {
        left -= 1;
        const [bytes, isKnown] = oneOf<readonly [Uint8Array, boolean]>(valid);
        const sent = sentOf(bytes, isKnown);
        const fault = faultIn(sent, await send(service.url, agent, sent), serial, counts);
        if (fault) broken.push(`${fault}: ${sent.method} ${shown(sent)}`);
      }
    };
    try {
      await Promise.all(Array.from({ length: LANES }, lane));
      const { status } = await fetch(`${service.url}/readyz`);
      if (status !== 200) broken.push(`afterwards the service is not ready: ${status}`);
      if (/"event":"error"/.test(service.process.output)) broken.push('the log has an error');
    } finally {
      agent.destroy();
      await service.process.end('SIGTERM');
    }
    for (const [what, count] of [...counts].sort(([, one], [, other]) => other - one)) print(`${what}: ${count}`);
    return broken;
  },
};
