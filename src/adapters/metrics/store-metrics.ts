// Gauges of the shared store, read when they are scraped. They are the same on every instance and worker process, so
// that an aggregation takes the maximum and not the sum. Moments are exported as timestamps: their age is the reader's
// subtraction, and stays right when a scrape fails.
import { Gauge, type Registry } from 'prom-client';
import { strayCount } from '../../domain/support/clock-facts.ts';
import type { StoreFacts } from '../../domain/support/ports.ts';

interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

interface StoreGauge {
  readonly help: string;
  readonly labelNames?: readonly string[];
  readonly samples: (facts: StoreFacts) => readonly Sample[];
}

const seconds = (ms: number): number => ms / 1000;
const one = (value: number): Sample[] => [{ value }];
const ageAt = (now: number, since: number | null): Sample[] =>
  one(since === null ? 0 : Math.max(0, seconds(now - since)));

const GAUGES: Readonly<Record<string, StoreGauge>> = {
  reseal_orders_waiting: {
    help: 'Certificates that wait for domain validation; counted up to 100000.',
    samples: ({ waiting }) => one(waiting.count),
  },
  reseal_orders_oldest_waiting_seconds: {
    help: 'Age of the oldest certificate that waits for domain validation; 0 when none does.',
    samples: ({ now, waiting }) => ageAt(now, waiting.oldestAt),
  },
  reseal_revocations_overdue: {
    help: 'Scheduled revocations whose time has come and that have not happened; counted up to 100000.',
    samples: ({ overdue }) => one(overdue.count),
  },
  reseal_revocations_oldest_overdue_seconds: {
    help: 'How late the revocation is that is overdue longest; 0 when none is.',
    samples: ({ now, overdue }) => ageAt(now, overdue.oldestAt),
  },
  reseal_issuer_expiry_timestamp_seconds: {
    help: 'When an issuer, or the first in the chain above it, expires.',
    labelNames: ['issuer', 'role', 'key_type', 'state'],
    samples: ({ issuers }) =>
      issuers.map(({ id, role, keyType, state, notAfter }) => ({
        labels: { issuer: id, role, key_type: keyType, state },
        value: seconds(notAfter),
      })),
  },
  reseal_ocsp_responder_expiry_timestamp_seconds: {
    help: 'When the current OCSP responder of an issuer expires.',
    labelNames: ['issuer'],
    samples: ({ responders }) =>
      responders.map(({ issuerId, notAfter }) => ({ labels: { issuer: issuerId }, value: seconds(notAfter) })),
  },
  reseal_crl_this_update_timestamp_seconds: {
    help: 'thisUpdate of the oldest CRL of an issuer: up to an hour before it was published.',
    labelNames: ['issuer'],
    samples: ({ crls }) =>
      crls.map(({ issuerId, thisUpdate }) => ({ labels: { issuer: issuerId }, value: seconds(thisUpdate) })),
  },
  reseal_crl_next_update_timestamp_seconds: {
    help: 'When the first CRL of an issuer expires, unless it is published anew.',
    labelNames: ['issuer'],
    samples: ({ crls }) =>
      crls.map(({ issuerId, nextUpdate }) => ({ labels: { issuer: issuerId }, value: seconds(nextUpdate) })),
  },
  reseal_offline_crl_due_timestamp_seconds: {
    help: 'When the next CRL of a root whose key is offline should be signed and installed: 30 days before the last one expires.',
    labelNames: ['issuer'],
    samples: ({ offlineLists }) =>
      offlineLists.map(({ issuerId, dueAt }) => ({ labels: { issuer: issuerId }, value: seconds(dueAt) })),
  },
  reseal_callback_pending: {
    help: 'Events that wait to be delivered, on all instances together; counted up to 100000.',
    samples: ({ queue }) => one(queue.pending),
  },
  reseal_callback_oldest_pending_seconds: {
    help: 'Age of the oldest event that waits to be delivered; 0 when none does.',
    samples: ({ now, queue }) => ageAt(now, queue.oldestPendingAt),
  },
  reseal_callback_ailing_lanes: {
    help: 'Accounts whose receiver keeps failing and is called less often.',
    samples: ({ queue }) => one(queue.degradedLanes),
  },
  reseal_store_size_bytes: {
    help: 'Size of the database.',
    samples: ({ sizeBytes }) => one(sizeBytes),
  },
  reseal_store_wal_bytes: {
    help: 'Size of the WAL of the embedded database, which a long reader lets grow; absent on PostgreSQL.',
    labelNames: ['kind'],
    samples: ({ walBytes }) => (walBytes === null ? [] : [{ labels: { kind: 'sqlite' }, value: walBytes }]),
  },
  reseal_clock_ahead_seconds: {
    help: 'How far the clock of an instance is ahead of the database’s; negative if it is behind.',
    labelNames: ['instance'],
    samples: ({ clock }) =>
      clock.instances.map(({ name, clockAheadMs }) => ({ labels: { instance: name }, value: seconds(clockAheadMs) })),
  },
  reseal_stray_times: {
    help: 'Leases and next attempts that a clock which was ahead has set, and that are not repaired yet.',
    samples: ({ clock }) => one(strayCount(clock)),
  },
  reseal_backup_last_success_timestamp_seconds: {
    help: 'When the last backup was made; absent if none is recorded.',
    // With a label, because a gauge without one always has a value.
    labelNames: ['kind'],
    samples: ({ lastBackupAt }) =>
      lastBackupAt === null ? [] : [{ labels: { kind: 'full' }, value: seconds(lastBackupAt) }],
  },
};

/** `read` resolves to undefined if the store cannot be read; the gauges are then absent or not a number. */
export function storeMetrics(registry: Registry, read: () => Promise<StoreFacts | undefined>): void {
  for (const [name, { help, labelNames = [], samples }] of Object.entries(GAUGES)) {
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      aggregator: 'max',
      registers: [registry],
      async collect() {
        const facts = await read();
        this.reset();
        const found = facts ? samples(facts) : labelNames.length === 0 ? one(Number.NaN) : [];
        for (const { labels = {}, value } of found) this.set(labels, value);
      },
    });
  }
}
