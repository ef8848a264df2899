// What happened to an order, as one timeline: who asked, what was decided, what was certified and revoked, where that was
// published, and what receivers answered. Reads only; bounded in each of its parts.
import type { Account } from '../../domain/access/account.ts';
import type { AuditEntry } from '../../domain/access/ports.ts';
import type { Delivery, DeliveryAttempt } from '../../domain/callbacks/delivery.ts';
import { type CertificateRecord, revocationOf } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { AccountId, OrderId } from '../../domain/ids.ts';
import type { PublishedSerial } from '../../domain/revocation/ports.ts';
import type { Store } from '../../domain/store.ts';
import type { WaitingCertificate } from '../../domain/validation/ports.ts';
import { accountOf, searchAudit } from './search-audit.ts';

export interface StoryEvent {
  readonly at: number;
  readonly event: string;
  /** Null for what is no act of its own, such as an attempt of a delivery. */
  readonly actor: string | null;
  readonly requestId: string | null;
  readonly details: Readonly<Record<string, string | number | null>>;
}

export interface Story {
  readonly account: Account;
  readonly order: Order;
  /** The certificate that waits for validation, with what its last check found. */
  readonly waiting: WaitingCertificate | undefined;
  /** Oldest first. */
  readonly events: readonly StoryEvent[];
}

const MAX_ENTRIES = 200;
const MAX_CERTIFICATES = 20;
const MAX_DELIVERIES = 50;

/** Returns undefined if there is no such order. */
export type TellStory = (accountId: AccountId, orderId: OrderId) => Promise<Story | undefined>;

export function tellStory(store: Store): TellStory {
  const search = searchAudit(store);
  return async (accountId, orderId) => {
    const account = await store.accounts.find(accountId);
    const order = await store.orders.find(accountId, orderId);
    if (!account || !order) return undefined;
    const { entries } = await search({ accountId, order: orderId, since: order.createdAt }, { limit: MAX_ENTRIES });
    const events: StoryEvent[] = [];
    for (const { id } of await store.certificates.listLast(accountId, orderId, MAX_CERTIFICATES)) {
      const certificate = await store.certificates.find(accountId, id);
      if (certificate) events.push(...eventsOf(certificate, await store.revokedSerials.ofCertificate(id)));
    }
    const { deliveries } = await store.deliveries.list(accountId, { orderId }, { limit: MAX_DELIVERIES });
    const attempts = await store.deliveries.attemptsOf(deliveries.map(({ id }) => id));
    for (const one of deliveries.toReversed()) events.push(...deliveryEvents(one, attempts.get(one.id) ?? []));
    const { pendingCertificateId } = order;
    return {
      account,
      order,
      waiting: pendingCertificateId === null ? undefined : await store.waiting.find(accountId, pendingCertificateId),
      events: [...entries.toReversed().map(entryEvent), ...events].sort((one, other) => one.at - other.at),
    };
  };
}

/** Of an order of any account. */
export type TellStoryOf = (orderId: OrderId) => Promise<Story | undefined>;

export function tellStoryOf(store: Store): TellStoryOf {
  const tell = tellStory(store);
  return async (orderId) => {
    const accountId = await accountOf(store, 'order', orderId);
    return accountId ? await tell(accountId, orderId) : undefined;
  };
}

export const entryEvent = ({ at, action, actor, requestId, subject, details }: AuditEntry): StoryEvent => ({
  ...{ at, event: action, actor, requestId, details: { subject, ...details } },
});

const happened = (at: number, event: string, details: StoryEvent['details']): StoryEvent => ({
  ...{ at, event, actor: null, requestId: null, details },
});

function eventsOf(certificate: CertificateRecord, seen: readonly PublishedSerial[]): StoryEvent[] {
  const { id } = certificate;
  const events: StoryEvent[] = [];
  if (certificate.state === 'issued') {
    const { serial, issuerId, notAfter } = certificate.preparation;
    const details = { certificate_id: id, serial, issuer_id: issuerId, not_after: new Date(notAfter).toISOString() };
    events.push(happened(certificate.issuedAt, 'signed', details));
  }
  const revocation = revocationOf(certificate);
  if (revocation && revocation.revokedAt === null) {
    events.push(happened(revocation.dueAt, 'revocation scheduled', { certificate_id: id, reason: revocation.reason }));
  }
  for (const { serial, issuerId, shard, crlNumber, crlPublishedAt } of seen) {
    if (crlPublishedAt === null) continue;
    const details = { certificate_id: id, serial, crl: `${issuerId}/${shard}.crl`, crl_number: crlNumber };
    events.push(happened(crlPublishedAt, 'listed in CRL', details));
  }
  return events;
}

function deliveryEvents(delivery: Delivery, attempts: readonly DeliveryAttempt[]): StoryEvent[] {
  const { id, action, certificateId, state, reason, nextAttemptAt, settledAt } = delivery;
  const of = { delivery_id: id, action, certificate_id: certificateId };
  const events = attempts.map(({ number, at, ms, httpStatus, reason: failure }) =>
    happened(at, 'callback attempt', { ...of, number, outcome: httpStatus ?? failure, ms }),
  );
  if (state === 'pending') {
    events.push(happened(nextAttemptAt ?? delivery.createdAt, 'callback pending', of));
  } else if (state !== 'delivered') {
    events.push(happened(settledAt ?? delivery.createdAt, `callback ${state}`, { ...of, reason }));
  }
  return events;
}
