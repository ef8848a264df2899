// The examples of the OpenAPI document, as a test has recorded them from the service. The same test compares them with
// what the service answers now, so that none can become untrue.
import { readFileSync } from 'node:fs';

/** A call of an operation and its answer. */
export interface CallExample {
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly answer: unknown;
}

export interface OperationExamples {
  /** The first one is shown first. */
  readonly calls: Readonly<Record<string, CallExample>>;
  /** Bodies of its own errors by code, or by status where errors have another form. */
  readonly errors: Readonly<Record<string, unknown>>;
}

export interface EventExample {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface Examples {
  readonly operations: Readonly<Record<string, OperationExamples>>;
  /** Bodies of errors that operations have in common, by code, or by status for those of the HTTP message itself. */
  readonly errors: Readonly<Record<string, unknown>>;
  readonly events: Readonly<Record<string, EventExample>>;
}

export const EXAMPLES_FILE = new URL('./examples.json', import.meta.url);

export const readExamples = (): Examples => JSON.parse(readFileSync(EXAMPLES_FILE, 'utf8'));
