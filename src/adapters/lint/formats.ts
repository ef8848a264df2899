// Reads what linters print. Strict: an answer that is not understood is no answer, and the certificate is not signed.
import type { LintFinding, LintSeverity } from '../../domain/issuance/lint.ts';

type Found = Omit<LintFinding, 'linter'>;
type Format = (output: string) => Found[];

/** The words of each linter for how bad a finding is; null for a rule that has nothing to object to. */
const ZLINT: Readonly<Record<string, LintSeverity | null>> = {
  ...{
    NA: null,
    NE: null,
    pass: null,
    info: 'notice',
    notice: 'notice',
    warn: 'warning',
    error: 'error',
    fatal: 'fatal',
  },
};
const PKILINT: Readonly<Record<string, LintSeverity>> = {
  ...{ DEBUG: 'notice', INFO: 'notice', NOTICE: 'notice', WARNING: 'warning', ERROR: 'error', FATAL: 'fatal' },
};
/** `meta` is about the linters themselves. */
const PKIMETAL: Readonly<Record<string, LintSeverity | null>> = {
  ...{
    meta: null,
    debug: null,
    info: 'notice',
    notice: 'notice',
    warning: 'warning',
    error: 'error',
    bug: 'error',
    fatal: 'fatal',
  },
};

export const LINT_FORMATS = {
  /** {"e_rule": {"result": "error", "details": "…"}, …} */
  zlint(output) {
    const rules = Object.entries(object(JSON.parse(output)));
    if (rules.length === 0) throw new Error('no rule was applied');
    return rules.flatMap(([code, value]) => {
      const { result, details } = object(value);
      const severity = severityIn(ZLINT, result);
      return severity === null ? [] : [{ severity, code, text: textOf(details) }];
    });
  },
  /** {"results": [{"finding_descriptions": [{"severity": "ERROR", "code": "…", "message": "…"}]}]} */
  pkilint(output) {
    return list(object(JSON.parse(output)).results).flatMap((result) =>
      list(object(result).finding_descriptions).flatMap((finding) => {
        const { severity, code, message } = object(finding);
        const level = severityIn(PKILINT, severity);
        return level === null ? [] : [{ severity: level, code: textOf(code), text: textOf(message) }];
      }),
    );
  },
  /** [{"Linter": "…", "Finding": "…", "Severity": "error", "Code": "…"}] */
  pkimetal(output) {
    return list(JSON.parse(output)).flatMap((finding) => {
      const { Linter, Finding, Severity, Code } = object(finding);
      const severity = severityIn(PKIMETAL, Severity);
      return severity === null ? [] : [{ severity, code: textOf(Code) || textOf(Linter), text: textOf(Finding) }];
    });
  },
} as const satisfies Record<string, Format>;
export type LintFormat = keyof typeof LINT_FORMATS;

function severityIn<T>(words: Readonly<Record<string, T>>, word: unknown): T {
  if (typeof word !== 'string' || !Object.hasOwn(words, word))
    throw new Error(`unknown severity ${JSON.stringify(word)}`);
  return words[word]!;
}

function object(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('an object is missing');
  return value as Record<string, unknown>;
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new Error('a list is missing');
  return value;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
