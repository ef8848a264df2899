// The interface of a benchmark. It asserts nothing about time: numbers are for reading and for comparing with earlier runs.
export type Print = (line: string) => void;

export interface Bench {
  readonly about: string;
  /** Takes too long to run unless it is named. */
  readonly isOptional?: boolean;
  run(print: Print): Promise<void>;
}
