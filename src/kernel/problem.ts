// A problem that the person at the keyboard can fix: what is wrong, and what to do about it. Thrown while starting,
// and by commands; never in answer to an API request (that is a Refusal).

/** Exit codes of the command line, documented in the README. */
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
