// reseal lint refusals | check
import { readFileSync } from 'node:fs';
import type { LintResult, LintVerdict } from '../domain/issuance/lint.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Command } from './command.ts';
import { pageSize, time } from './values.ts';

const linesOf = (verdict: LintVerdict): string[] =>
  verdict.kind === 'failed'
    ? [`  no answer: ${verdict.why}`]
    : verdict.findings.map(
        ({ linter, severity, code, text }) => `  ${linter}: ${severity} ${code}${text && `: ${text}`}`,
      );

const shown = ({ serial, certificateId, orderId, accountId, at, verdict }: LintResult) => ({
  ...{ serial_number: serial, certificate_id: certificateId, order_id: orderId, account_id: accountId, at: time(at) },
  verdict,
});

export const lintRefusals: Command = {
  store: 'existing',
  about: 'list certificates that were not signed, because a linter objected or gave no answer; newest first',
  examples: ['lint refusals --limit 20'],
  positionals: [],
  options: { limit: { type: 'string', about: 'how many at most' } },
  async run({ options }, { withRecords }) {
    const results = await withRecords(({ lintRefusals: list }) => list(pageSize(options.limit)));
    const blocks = results.map((one) =>
      [
        `${time(one.at)}  order ${one.orderId}  serial ${one.serial}  ${one.verdict.kind}`,
        ...linesOf(one.verdict),
      ].join('\n'),
    );
    return { json: { refusals: results.map(shown) }, text: blocks.join('\n') || 'None.' };
  },
};

export const lintCheck: Command = {
  store: 'none',
  about: 'show a certificate to the linters of RESEAL_LINTERS_FILE, to try their settings',
  examples: ['lint check certificate.pem'],
  positionals: ['CERTIFICATE'],
  options: {},
  async run({ positionals: [file = ''] }, { lintFile }) {
    const verdict = await lintFile(readCertificateFile(file));
    const text = [`${verdict.kind}: ${verdict.linters.join(', ') || 'no linter'}`, ...linesOf(verdict)].join('\n');
    return { json: { verdict }, text, ...(verdict.kind !== 'passed' && { exitCode: EXIT.refused }) };
  },
};

function readCertificateFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Problem(
      EXIT.refused,
      `CERTIFICATE ${file} cannot be read: ${(error as Error).message}`,
      'Name a PEM file.',
    );
  }
}
