// Why an authorization or an order failed, as it is kept and shown in the resource.
import type { Subproblem } from './problem.ts';

export interface StoredProblem extends Subproblem {
  readonly subproblems?: readonly Subproblem[];
}
