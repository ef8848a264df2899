// Load for the backup campaigns: reissues, revocations and callbacks, with a record of what was acknowledged; and the
// judgement of a restored service: all of that must be there, and nothing that the world saw revoked may be valid.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../src/config/config.ts';
import { mapLimit } from '../src/kernel/concurrency.ts';
import { openCallbacks } from '../src/wiring/callbacks.ts';
import type { Key } from '../test/support/app.ts';
import { body, type PlacedOrder } from '../test/support/orders.ts';
import { derOf, ocspStatus, pems, readCrl } from '../test/support/status.ts';
import { ReissueClient } from './reissues.ts';
import { type Service, type Settings, startService, withStore, withTables } from './service.ts';

const REASONS = ['superseded', 'cessation_of_operation', 'affiliation_changed'] as const;
/** Each writer pauses, so that the store does not outgrow the time a campaign has. */
const PAUSE_MS = 20;
const AT_ONCE = 16;
const BODY = JSON.stringify(body());

export interface Fact {
  readonly key: Key;
  readonly certificateId: string;
  readonly kind: 'issued' | 'revoked';
}

export async function subscribe(settings: Settings, orders: readonly PlacedOrder[], url: string): Promise<void> {
  await withStore(settings, async (app) => {
    const { callbacks } = openCallbacks(app, readConfig(settings).config, Date.now);
    for (const { key } of orders) {
      await callbacks.save(
        { accountId: key.accountId, actor: 'cli', requestId: null },
        { url, access_key: 'campaign-key' },
      );
    }
  });
}

/** What was acknowledged so far, and whether the writers pause: a store that grows while it is judged is never judged. */
export interface Load {
  readonly facts: Fact[];
  isPaused: boolean;
}

/** One writer per order: reissues, and revokes every other replaced certificate. Ends when `signal` aborts. */
export async function writeUntil(
  { url }: Service,
  orders: readonly PlacedOrder[],
  load: Load,
  signal: AbortSignal,
): Promise<void> {
  const { facts } = load;
  using client = new ReissueClient(orders.length);
  const writer = async (order: PlacedOrder) => {
    const { key } = order;
    let previous = order.certificateId;
    for (let count = 0; !signal.aborted; count += 1) {
      while (load.isPaused && !signal.aborted) await sleep(PAUSE_MS);
      const answer = await client.reissue(url, order, BODY);
      if (answer?.status === 200) {
        const certificateId: string = answer.body.data.certificate.id;
        facts.push({ key, certificateId, kind: 'issued' });
        if (count % 2 === 0 && (await revoke(url, key, previous, count)))
          facts.push({ key, certificateId: previous, kind: 'revoked' });
        previous = certificateId;
      }
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(orders.map(writer));
}

const headersOf = ({ keyId, authKey }: Key) => ({ 'X-CC-Key-ID': keyId, 'X-CC-Auth-Key': authKey });

async function revoke(url: string, key: Key, certificateId: string, count: number): Promise<boolean> {
  const response = await fetch(`${url}/openapi/v3/certs/${certificateId}/revoke`, {
    method: 'POST',
    headers: { ...headersOf(key), 'Content-Type': 'application/json' },
    body: JSON.stringify({ reason: REASONS[(count / 2) % REASONS.length] }),
  });
  await response.arrayBuffer();
  return response.status === 200;
}

/** The CRLs that the world sees, saved into a folder, with their issuers' ids. */
export async function mirror({ url }: Service, settings: Settings, folder: string): Promise<void> {
  mkdirSync(folder);
  const lists = await withTables(settings, (db) => db.selectFrom('crl').select(['issuer_id', 'shard']).execute());
  for (const { issuer_id, shard } of lists) {
    writeFileSync(join(folder, `${issuer_id}-${shard}.crl`), await crlFrom(url, issuer_id, shard));
  }
}

async function crlFrom(url: string, issuerId: string, shard: string | number): Promise<Buffer> {
  const response = await fetch(`${url}/crl/${issuerId}/${shard}.crl`);
  if (response.status !== 200) throw new Error(`${issuerId}/${shard}.crl: ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

export interface Judgement {
  readonly broken: string[];
  certificates: number;
  revoked: number;
  lists: number;
}

interface Restored {
  /** Of the restored service. */
  readonly settings: Settings;
  /** Acknowledged before the backup began. */
  readonly facts: readonly Fact[];
  /** Name and content of the CRLs that were given to the restore. */
  readonly crls: ReadonlyMap<string, Buffer>;
}

/** Starts a service on the restored store, and compares it with what the world knows. */
export async function judgeRestored({ settings, facts, crls }: Restored): Promise<Judgement> {
  const events = await withTables(settings, (db) => db.selectFrom('outbox').select(['certificate_id']).execute());
  const announced = new Set(events.map(({ certificate_id }) => certificate_id));
  const service = await startService(settings);
  const judgement: Judgement = { broken: [], certificates: 0, revoked: 0, lists: 0 };
  const { broken } = judgement;
  let issuer: Buffer | undefined;
  try {
    await mapLimit(AT_ONCE, facts, async ({ key, certificateId, kind }) => {
      const response = await fetch(`${service.url}/openapi/v3/certs/${certificateId}`, { headers: headersOf(key) });
      const { data } = (await response.json()) as {
        data?: { Certificate: { ica_pem: string; revocation: { revoked_at: string | null } | null } };
      };
      judgement.certificates += 1;
      issuer ??= data && derOf(pems(data.Certificate.ica_pem)[0] ?? '');
      if (!data) broken.push(`${certificateId} was acknowledged, and is lost`);
      else if (kind === 'revoked' && !data.Certificate.revocation?.revoked_at)
        broken.push(`the revocation of ${certificateId} was acknowledged, and is lost`);
      if (kind === 'issued' && !announced.has(certificateId)) broken.push(`the event of ${certificateId} is lost`);
    });
    for (const [name, der] of crls) {
      if (!issuer) throw new Error('no certificate tells who issued it');
      const before = readCrl(der, issuer);
      const [issuerId = '', shard = ''] = name.replace('.crl', '').split('-');
      const after = readCrl(await crlFrom(service.url, issuerId, shard), issuer);
      judgement.lists += 1;
      if (after.number <= before.number) broken.push(`${name}: number ${after.number} after ${before.number}`);
      await mapLimit(AT_ONCE, [...before.revoked], async ([serial, { reason }]) => {
        judgement.revoked += 1;
        const status = await ocspStatus(service, serial, issuer as Buffer);
        if (status.status !== 'revoked' || status.reason !== reason)
          broken.push(`${serial} is ${status.status} in OCSP`);
        if (after.revoked.get(serial)?.reason !== reason) broken.push(`${serial} is not on the CRL`);
      });
    }
  } finally {
    await service.process.end('SIGTERM');
  }
  return judgement;
}

export const textOf = ({ certificates, revoked, lists, broken }: Judgement): string =>
  `${certificates} acknowledged facts compared, ${revoked} serial numbers on ${lists} CRLs revoked, ${broken.length} broken`;

const STANDSTILL_MS = 60_000;

/** Lets the writers work, and resolves when so many more facts are acknowledged. */
export async function untilMore(load: Load, count: number): Promise<void> {
  const { facts } = load;
  load.isPaused = false;
  const target = facts.length + count;
  for (const end = performance.now() + STANDSTILL_MS; facts.length < target; await sleep(10)) {
    if (performance.now() > end) throw new Error('nothing is acknowledged any more');
  }
}
