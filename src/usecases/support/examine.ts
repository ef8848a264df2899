// The examination of a running service by the doctor, and what of the service needs the operator's attention.
import { type Attention, attentionOf } from '../../domain/support/attention.ts';
import type { StoreFacts } from '../../domain/support/ports.ts';
import { MINUTE_MS } from '../../kernel/durations.ts';
import type { Diagnostic } from '../../kernel/problem.ts';

export interface Examination {
  readonly startedAt: number;
  /** Null while it runs. */
  readonly endedAt: number | null;
  /** So far. */
  readonly findings: readonly Diagnostic[];
}

/** The last examination, unless it is older; then a new one, which may still run. Answers within seconds. */
export type Examine = (maxAgeMs: number) => Promise<Examination>;

export type ListAttention = () => Promise<{ readonly items: Attention[]; readonly examination: Examination }>;

const MAX_AGE_MS = 10 * MINUTE_MS;

export const listAttention =
  (examine: Examine, readFacts: () => Promise<StoreFacts | undefined>): ListAttention =>
  async () => {
    const examination = await examine(MAX_AGE_MS);
    return { items: attentionOf(await readFacts(), examination.findings), examination };
  };
