// An error that the operator can fix: what is wrong, and the remedy. Thrown at start-up and by CLI commands, never in
// response to an API request (that is a Refusal).

/** CLI exit codes, documented in the README. */
export const EXIT = { ok: 0, refused: 1, usage: 2, configuration: 3, store: 4, bug: 70 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export class Problem extends Error {
  readonly remedy: string;
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
    this.remedy = remedy;
  }
}

/** Result of one check of `reseal doctor`. A problem stops the service from working; a warning may later. */
export interface Diagnostic {
  readonly check: string;
  readonly state: 'ok' | 'warning' | 'problem';
  readonly text: string;
  readonly remedy?: string;
}
