// Shows certificates-to-be to the operator's linters. Linters read whole certificates, so the bytes are wrapped with a
// signature of a throwaway key, never the issuer's: what a linter is shown must be worthless to its reader.

import { pem as toPem } from '../../domain/certificate/pem.ts';
import type { CallOut } from '../../domain/egress/outbound.ts';
import {
  boundedFindings,
  LINT_SEVERITIES,
  type LintCertificate,
  type LintedBytes,
  type LintFinding,
  type LintVerdict,
} from '../../domain/issuance/lint.ts';
import { fairSemaphore } from '../../kernel/concurrency.ts';
import { runLinter } from './command-linter.ts';
import { LINT_FORMATS } from './formats.ts';
import type { Linter } from './linters-file.ts';

interface LintGateTools {
  /** Returns a certificate, DER, whose signature verifies under no key that is kept. */
  readonly imitate: (bytes: LintedBytes) => Promise<Uint8Array>;
  readonly callOut: CallOut;
  /** Linters that run at once in this process. */
  readonly atOnce: number;
}

/** Certificates that wait for a linter in this process; more are refused at once. */
const MAX_WAITING = 256;
/** For a turn and the linters together. A hanging linter costs its own products no more than this. */
const MAX_WAIT_MS = 20_000;
const MAX_ANSWER_BYTES = 1024 * 1024;

export function lintGate(linters: readonly Linter[], { imitate, callOut, atOnce }: LintGateTools): LintCertificate {
  const acquire = fairSemaphore(Math.max(2, atOnce));
  const names = linters.map(({ name }) => name);
  let waiting = 0;

  async function ask(linter: Linter, pem: string, limitMs: number): Promise<LintFinding[]> {
    const { source, name, format } = linter;
    const output =
      source.kind === 'command'
        ? await runLinter(source.command, pem, limitMs)
        : await post(callOut, source, pem, limitMs);
    try {
      return LINT_FORMATS[format](output).map((finding) => ({ linter: name, ...finding }));
    } catch (error) {
      throw new Error(`its answer is not that of ${format}: ${(error as Error).message}`);
    }
  }

  async function judge(pem: string, deadline: number): Promise<LintVerdict> {
    const all: LintFinding[] = [];
    let isRefused = false;
    for (const linter of linters) {
      const limitMs = Math.min(linter.limitMs, deadline - performance.now());
      if (limitMs <= 0) return { kind: 'failed', linters: names, why: `${linter.name}: there was no time left for it` };
      try {
        const findings = await ask(linter, pem, limitMs);
        isRefused ||= findings.some((finding) => refuses(linter, finding));
        all.push(...findings);
      } catch (error) {
        return { kind: 'failed', linters: names, why: `${linter.name}: ${(error as Error).message}` };
      }
    }
    return { kind: isRefused ? 'refused' : 'passed', linters: names, findings: boundedFindings(all) };
  }

  return async (bytes, accountId) => {
    if (linters.length === 0) return { kind: 'failed', linters: names, why: 'no linter is configured' };
    if (waiting >= MAX_WAITING)
      return { kind: 'failed', linters: names, why: 'too many certificates wait for a linter' };
    const deadline = performance.now() + MAX_WAIT_MS;
    waiting += 1;
    try {
      using _turn = await acquire(accountId);
      return await judge(toPem('CERTIFICATE', await imitate(bytes)), deadline);
    } catch (error) {
      return { kind: 'failed', linters: names, why: (error as Error).message };
    } finally {
      waiting -= 1;
    }
  };
}

const refuses = ({ failOn, ignore }: Linter, { severity, code }: LintFinding): boolean =>
  LINT_SEVERITIES.indexOf(severity) >= LINT_SEVERITIES.indexOf(failOn) && !ignore.has(code);

/** As pkimetal wants it: a form with the certificate in base64. */
async function post(
  callOut: CallOut,
  { url, allow }: Extract<Linter['source'], { kind: 'http' }>,
  pem: string,
  totalMs: number,
): Promise<string> {
  const b64 = pem.replace(/-----[^-]+-----|\s/g, '');
  const outcome = await callOut({
    ...{ url, method: 'POST', policy: { allow, deny: [], totalMs, maxBodyBytes: MAX_ANSWER_BYTES } },
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
    body: new URLSearchParams({ b64input: b64, format: 'json', severity: 'notice' }).toString(),
  });
  if (outcome.kind === 'private') throw new Error('its address is private; name it in `allow` of the linters file');
  if (outcome.kind === 'failed') throw new Error(`it did not answer: ${outcome.reason}`);
  if (outcome.status !== 200) throw new Error(`it answered ${outcome.status}`);
  return Buffer.from(outcome.body).toString('utf8');
}
