// What a bench is. It asserts nothing about time: numbers are for reading and for comparing with an earlier run.
export type Print = (line: string) => void;

export interface Bench {
  readonly about: string;
  run(print: Print): Promise<void>;
}
