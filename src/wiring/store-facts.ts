// Reads what the metrics of the store show. All gauges of a scrape share one reading, and so do scrapes at the same time:
// there is one reading at a time, however often it is scraped.
import { chainNotAfter } from '../adapters/ca/issuer-selection.ts';
import type { OpenStore } from '../adapters/store/store.ts';
import { isActive } from '../domain/certificate/authority.ts';
import type { Clock } from '../domain/clock.ts';
import { OFFLINE_NOTICE_MS } from '../domain/revocation/revocation.ts';
import type { IssuerFacts, StoreFacts } from '../domain/support/ports.ts';

/** Resolves to undefined if the store cannot be read; that was logged and counted. */
export function storeFacts(store: OpenStore, now: Clock): () => Promise<StoreFacts | undefined> {
  let reading: Promise<StoreFacts | undefined> | undefined;
  const end = () => {
    reading = undefined;
  };
  return () => {
    reading ??= read(store, now())
      .catch(() => undefined)
      .finally(end);
    return reading;
  };
}

async function read(
  { facts, issuers, crls, deliveries, settings, clockFacts }: OpenStore,
  now: number,
): Promise<StoreFacts> {
  const known = await issuers.listPublic();
  const responders: StoreFacts['responders'][number][] = [];
  for (const { id: issuerId } of known) {
    const notAfter = await facts.responderExpiry(issuerId);
    if (notAfter !== undefined) responders.push({ issuerId, notAfter });
  }
  const lists = byIssuer(await crls.heads());
  const offline = new Set(known.filter(({ keyPlace }) => keyPlace === 'offline').map(({ id }) => id));
  return {
    now,
    waiting: await facts.waiting(),
    overdue: await facts.overdueRevocations(now),
    issuers: known.map(
      (one): IssuerFacts => ({
        ...{ id: one.id, role: one.role, keyType: one.keyType },
        state: isActive(one, known) ? 'active' : 'retired',
        notAfter: chainNotAfter(one, known),
      }),
    ),
    responders,
    crls: lists,
    offlineLists: lists
      .filter(({ issuerId }) => offline.has(issuerId))
      .map(({ issuerId, nextUpdate }) => ({ issuerId, dueAt: nextUpdate - OFFLINE_NOTICE_MS })),
    queue: await deliveries.queueFacts(),
    sizeBytes: await facts.sizeBytes(),
    walBytes: facts.walBytes(),
    clock: await clockFacts(),
    lastBackupAt: momentIn(await settings.get('last_backup_at')),
  };
}

/** Of the shards of an issuer, the moments that are reached first. */
function byIssuer(heads: StoreFacts['crls']): StoreFacts['crls'] {
  const first = new Map<string, StoreFacts['crls'][number]>();
  for (const { issuerId, thisUpdate, nextUpdate } of heads) {
    const known = first.get(issuerId) ?? { issuerId, thisUpdate, nextUpdate };
    first.set(issuerId, {
      issuerId,
      thisUpdate: Math.min(known.thisUpdate, thisUpdate),
      nextUpdate: Math.min(known.nextUpdate, nextUpdate),
    });
  }
  return [...first.values()];
}

/** Milliseconds, or a date and time. */
function momentIn(text: string | undefined): number | null {
  const at = text === undefined ? Number.NaN : /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  return Number.isFinite(at) ? at : null;
}
