// Prometheus metrics of callback delivery: outcomes of attempts, latency of the first attempt. store-metrics.ts has the
// queue.
import { Counter, Histogram, type Registry } from 'prom-client';

interface DeliveryMetrics {
  attempted(outcome: string): void;
  firstAttempt(ms: number): void;
  gaveUp(): void;
  expiryNotice(days: number): void;
}

export function deliveryMetrics(registry: Registry): DeliveryMetrics {
  const registers = [registry];
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
  const notices = new Counter({
    name: 'reseal_expiry_notices_total',
    help: 'Events that say that a certificate will expire, by days before its end.',
    labelNames: ['days'],
    registers,
  });
  return {
    attempted: (outcome) => attempts.inc({ outcome }),
    firstAttempt: (ms) => firstAttempt.observe(ms / 1000),
    gaveUp: () => givenUp.inc(),
    expiryNotice: (days) => notices.inc({ days }),
  };
}
