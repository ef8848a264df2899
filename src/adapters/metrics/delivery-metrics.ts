// Prometheus metrics of callback delivery: queue depth and age, outcomes of attempts, latency of the first attempt.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { QueueFacts } from '../../domain/callbacks/ports.ts';

interface DeliveryMetrics {
  attempted(outcome: string): void;
  firstAttempt(ms: number): void;
  gaveUp(): void;
  queue(facts: QueueFacts, now: number): void;
}

export function deliveryMetrics(registry: Registry): DeliveryMetrics {
  const registers = [registry];
  const pending = new Gauge({
    name: 'reseal_callback_pending',
    help: 'Events that wait to be delivered, on all instances together; counted up to 100000.',
    registers,
  });
  const oldest = new Gauge({
    name: 'reseal_callback_oldest_pending_seconds',
    help: 'Age of the oldest event that waits to be delivered; 0 when none does.',
    registers,
  });
  const degraded = new Gauge({
    name: 'reseal_callback_ailing_lanes',
    help: 'Accounts whose receiver keeps failing and is called less often.',
    registers,
  });
  const attempts = new Counter({
    name: 'reseal_callback_attempts_total',
    help: 'Attempts to deliver an event, by how they ended.',
    labelNames: ['outcome'],
    registers,
  });
  const firstAttempt = new Histogram({
    name: 'reseal_callback_first_attempt_seconds',
    help: 'Time from the event to the first attempt to deliver it.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600],
    registers,
  });
  const givenUp = new Counter({
    name: 'reseal_callback_gave_up_total',
    help: 'Events that were given up.',
    registers,
  });
  return {
    attempted: (outcome) => attempts.inc({ outcome }),
    firstAttempt: (ms) => firstAttempt.observe(ms / 1000),
    gaveUp: () => givenUp.inc(),
    queue(facts, now) {
      pending.set(facts.pending);
      oldest.set(facts.oldestPendingAt === null ? 0 : Math.max(0, now - facts.oldestPendingAt) / 1000);
      degraded.set(facts.degradedLanes);
    },
  };
}
