// What a campaign is: an experiment on the real service that reports broken promises.
export type Print = (line: string) => void;

export interface Campaign {
  readonly about: string;
  /** What N counts is the campaign's own business; `about` says it. */
  readonly defaultN: number;
  /** Prints what it saw and returns the promises that were broken: none when all is well. */
  run(n: number, print: Print): Promise<string[]>;
}
