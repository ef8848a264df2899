// Opens the gate of external linters, and checks it for the doctor.
import { X509Certificate } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { checkLinters } from '../adapters/doctor/linters.ts';
import { callOut } from '../adapters/egress/call-out.ts';
import { lintGate } from '../adapters/lint/lint-gate.ts';
import { readLintersFile } from '../adapters/lint/linters-file.ts';
import type { Config } from '../config/config.ts';
import type { Product } from '../domain/catalog/products.ts';
import type { CallOut } from '../domain/egress/outbound.ts';
import type { LintCertificate, LintedBytes, LintVerdict } from '../domain/issuance/lint.ts';
import type { Log } from '../kernel/log.ts';
import { type Diagnostic, EXIT, Problem } from '../kernel/problem.ts';

interface LintGateParts {
  readonly products: readonly Pick<Product, 'id' | 'requiresLint'>[];
  readonly imitate: (bytes: LintedBytes) => Promise<Uint8Array>;
  readonly log: Log;
}

/** Throws a Problem if the linters file cannot be used. */
export function openLintGate(config: Config, { products, imitate, log }: LintGateParts): LintCertificate {
  const linters = readLintersFile(config.lintersFile);
  const gated = products.filter(({ requiresLint }) => requiresLint).map(({ id }) => id);
  if (gated.length > 0 && linters.length === 0) {
    log({
      event: 'warning',
      text: `${gated.join(', ')} cannot be issued: they require a linter, and RESEAL_LINTERS_FILE names none`,
    });
  }
  return lintGate(linters, {
    imitate,
    callOut: callOutOf(config),
    atOnce: Math.max(1, Math.floor(availableParallelism() / Math.max(1, config.workers))),
  });
}

/** For a command: the certificate is shown as it is. Throws a Problem. */
export async function lintFile(config: Config, pem: string): Promise<LintVerdict> {
  const certificate = certificateIn(pem);
  const gate = lintGate(readLintersFile(config.lintersFile), {
    ...{ callOut: callOutOf(config), atOnce: 2, imitate: async () => certificate },
  });
  return await gate({ issuerId: '', signHash: 'sha256', toBeSigned: certificate }, '');
}

function certificateIn(pem: string): Uint8Array {
  try {
    return new X509Certificate(pem).raw;
  } catch {
    throw new Problem(EXIT.refused, 'the file holds no certificate', 'Name a file with one certificate in PEM.');
  }
}

export const diagnoseLinters = (config: Config, products: readonly Product[], now: number): Promise<Diagnostic> =>
  checkLinters(config.lintersFile, products, callOutOf(config), now);

const callOutOf = ({ dnsServers }: Config): CallOut => callOut({ dnsServers, extraRoots: [], userAgent: 'Reseal' });
