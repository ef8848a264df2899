// The interface of a campaign: an experiment on the real service that reports violated guarantees.
export type Print = (line: string) => void;

export interface Campaign {
  readonly about: string;
  /** `about` says what N counts. */
  readonly defaultN: number;
  /** Prints its observations and returns the violations: empty if there were none. */
  run(n: number, print: Print): Promise<string[]>;
}
