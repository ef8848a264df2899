// What external linters say about a certificate before it is signed. The built-in lint (adapters/ca/lint.ts) compares
// the bytes with what was decided; external ones compare them with the world's rules.

import type { SignHash } from '../certificate/sign-hash.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';

export const LINT_SEVERITIES = ['notice', 'warning', 'error', 'fatal'] as const;
export type LintSeverity = (typeof LINT_SEVERITIES)[number];

export interface LintFinding {
  readonly linter: string;
  readonly severity: LintSeverity;
  /** The linter's own name of the rule. */
  readonly code: string;
  readonly text: string;
}

export type LintVerdict =
  /** Findings below the linter's threshold, and ignored ones, are kept. */
  | { readonly kind: 'passed'; readonly linters: readonly string[]; readonly findings: readonly LintFinding[] }
  | { readonly kind: 'refused'; readonly linters: readonly string[]; readonly findings: readonly LintFinding[] }
  /** A linter gave no answer that can be read. Nothing is signed: failure closes. */
  | { readonly kind: 'failed'; readonly linters: readonly string[]; readonly why: string };

/** What a signature is asked for. */
export interface LintedBytes {
  readonly issuerId: string;
  readonly signHash: SignHash;
  readonly toBeSigned: Uint8Array;
}

/** Shows the certificate-to-be to every linter. Never rejects, and always settles within bounds. */
export type LintCertificate = (bytes: LintedBytes, accountId: AccountId) => Promise<LintVerdict>;

/** Durable before the serial number is signed, or instead of its signature. */
export interface LintResult {
  readonly serial: string;
  readonly certificateId: CertificateId;
  readonly orderId: OrderId;
  readonly accountId: AccountId;
  readonly at: number;
  readonly verdict: LintVerdict;
}

export interface LintResults {
  insert(result: LintResult): Promise<void>;
  /** Newest first: those that passed nothing on. */
  listRefused(limit: number): Promise<LintResult[]>;
  ofSerial(serial: string): Promise<LintResult | undefined>;
  deleteBefore(before: number, limit: number): Promise<number>;
}

/** Bounds a row, whatever a linter prints. */
export const MAX_FINDINGS = 50;
const MAX_TEXT = 500;

/** Worst first, bounded, without characters that would forge lines in a terminal or a log. */
export function boundedFindings(findings: readonly LintFinding[]): LintFinding[] {
  const rank = ({ severity }: LintFinding) => -LINT_SEVERITIES.indexOf(severity);
  const plain = (text: string) =>
    text.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ').slice(0, MAX_TEXT);
  return findings
    .toSorted((a, b) => rank(a) - rank(b))
    .slice(0, MAX_FINDINGS)
    .map(({ linter, severity, code, text }) => ({ linter, severity, code: plain(code), text: plain(text) }));
}
