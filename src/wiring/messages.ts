// Messages between the supervisor and its processes. A lost one delays work until the next poll; nothing durable depends
// on them.
import type { MetricValues } from '../adapters/metrics/metrics.ts';
import type { AccountId } from '../domain/ids.ts';
import type { ExitCode } from '../kernel/problem.ts';
import type { BoundedOperation } from '../usecases/access/in-flight.ts';

/** What each process of a service does. */
export type Role = 'http' | 'background';

/** Held until it is released, or until the process that asked has ended. */
export type Lasting =
  | { readonly about: 'test_slot'; readonly accountId: AccountId; readonly host: string }
  | { readonly about: 'operation_slot'; readonly operation: BoundedOperation; readonly accountId: AccountId }
  | { readonly about: 'lock'; readonly key: string };

export type Question =
  | Lasting
  | { readonly about: 'metrics' }
  | { readonly about: 'history'; readonly spanMs: number }
  | { readonly about: 'listener' };

/** A text for `metrics`, JSON for `history`; for what lasts, `held` or whose limit refused it; null for `listener`: no process listens any more. */
export type Answered = string | null;

export type ToSupervisor =
  /** `address` and `url` of a process that listens: where, and as what callers know it. */
  | { readonly kind: 'ready'; readonly address: string; readonly url: string }
  | { readonly kind: 'failed'; readonly exitCode: ExitCode; readonly message: string; readonly remedy: string }
  | { readonly kind: 'events_committed' }
  | { readonly kind: 'output_closed' }
  /** The process has met damage in the database's files. */
  | { readonly kind: 'damaged' }
  | { readonly kind: 'ask'; readonly id: number; readonly question: Question }
  | { readonly kind: 'release'; readonly id: number }
  | { readonly kind: 'metrics'; readonly id: number; readonly values: MetricValues };

export interface Answer {
  readonly kind: 'answer';
  readonly id: number;
  readonly value: Answered;
}

export type ToChild =
  | Answer
  | { readonly kind: 'wake' }
  /** Another process has met damage in the database's files. */
  | { readonly kind: 'damaged' }
  | { readonly kind: 'stop'; readonly drainMs: number }
  | { readonly kind: 'metrics'; readonly id: number };
