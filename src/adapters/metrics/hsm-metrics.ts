// Metrics of the signer processes of tokens. Of this process; they can be summed.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

interface TokenFacts {
  readonly isAvailable: boolean;
  readonly queued: number;
}

export function hsmMetrics(registry: Registry) {
  const registers = [registry];
  const signatures = new Histogram({
    name: 'reseal_hsm_request_seconds',
    help: 'Time from sending a request to the signer process of a token to its answer.',
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    registers,
  });
  const failures = new Counter({
    name: 'reseal_hsm_failures_total',
    help: 'Failures of tokens: the token, its PIN, one key, the module; refused: requests that were not sent.',
    labelNames: ['kind'],
    registers,
  });
  const restarts = new Counter({
    name: 'reseal_hsm_restarts_total',
    help: 'Signer processes of tokens that were started again.',
    registers,
  });
  return {
    answered: (seconds: number) => signatures.observe(seconds),
    failed: (kind: string) => failures.inc({ kind }),
    restarted: () => restarts.inc(),
    watch(read: () => readonly TokenFacts[]): void {
      new Gauge({
        name: 'reseal_hsm_queue',
        help: 'Requests that wait for tokens, or for their answer.',
        registers,
        collect() {
          this.set(read().reduce((sum, { queued }) => sum + queued, 0));
        },
      });
      new Gauge({
        name: 'reseal_hsm_unavailable',
        help: 'Tokens with issuer keys whose signer process cannot sign.',
        aggregator: 'max',
        registers,
        collect() {
          this.set(read().filter(({ isAvailable }) => !isAvailable).length);
        },
      });
    },
  };
}
