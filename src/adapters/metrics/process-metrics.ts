// Metrics of several processes as one text. Each process is asked when the metrics are read. Counters of processes that have
// ended stay in the sums, as far as they were ever read: to Prometheus a counter that falls looks like a restart.
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { LOOP_LOOK_MS, type MetricValues } from './metrics.ts';

/** A process that is stuck is shown with the values of the last time. */
const ANSWER_MS = 2_000;

interface Member {
  readonly role: string;
  /** Asks the process for its values; `received` takes them. */
  readonly request: (id: number) => void;
  readonly waiting: Map<number, () => void>;
  last: MetricValues;
}

export interface ProcessMetrics {
  joined(member: number, role: string, request: (id: number) => void): void;
  left(member: number): void;
  received(member: number, id: number, values: MetricValues): void;
  text(): Promise<string>;
  values(): Promise<MetricValues>;
}

export function processMetrics(): ProcessMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_LOOK_MS });
  const [registers, labelNames] = [[registry], ['role']];
  const running = new Gauge({ name: 'reseal_processes', help: 'Processes that run, by role.', labelNames, registers });
  const ended = new Counter({
    name: 'reseal_processes_ended_total',
    help: 'Processes that have ended, by role.',
    labelNames,
    registers,
  });
  const members = new Map<number, Member>();
  /** Of processes that have ended. */
  let lasting: MetricValues[] = [];
  let lastId = 0;

  async function ask({ request, waiting }: Member): Promise<void> {
    const id = ++lastId;
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(id, resolve);
    const timer = setTimeout(resolve, ANSWER_MS);
    request(id);
    await promise;
    clearTimeout(timer);
    waiting.delete(id);
  }

  async function together(): Promise<Registry> {
    await Promise.all([...members.values()].map(ask));
    const own = await registry.getMetricsAsJSON();
    // One list, however many processes have ended.
    const sums = AggregatorRegistry.aggregate([...lasting]).getMetricsAsJSON();
    const counted = lasting.length;
    lasting = [await sums, ...lasting.slice(counted)];
    const present = [...members.values()].map(({ last }) => last);
    return AggregatorRegistry.aggregate([own, ...present, ...lasting].map((one) => [...one]));
  }

  return {
    joined(member, role, request) {
      members.set(member, { role, request, waiting: new Map(), last: [] });
      running.inc({ role });
    },

    left(id) {
      const member = members.get(id);
      if (!member) return;
      members.delete(id);
      running.dec({ role: member.role });
      ended.inc({ role: member.role });
      lasting.push(member.last.filter(({ type, aggregator }) => String(type) !== 'gauge' && aggregator === 'sum'));
      for (const resolve of member.waiting.values()) resolve();
    },

    received(member, id, values) {
      const found = members.get(member);
      if (!found) return;
      found.last = values;
      found.waiting.get(id)?.();
    },

    text: async () => await (await together()).metrics(),
    values: async () => await (await together()).getMetricsAsJSON(),
  };
}
