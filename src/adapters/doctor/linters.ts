// Checks the linters file: whether products need it, and whether each linter answers in its format. Which findings it has is
// not judged: the certificate it is shown is one of a moment.
import type { Product } from '../../domain/catalog/products.ts';
import type { CallOut } from '../../domain/egress/outbound.ts';
import { DAY_MS } from '../../kernel/durations.ts';
import { type Diagnostic, Problem } from '../../kernel/problem.ts';
import { newIssuerKey, openIssuerKey } from '../ca/issuer-key.ts';
import { newSerial } from '../ca/issuers.ts';
import { rootExtensions } from '../ca/profiles.ts';
import {
  DEFAULT_HASH,
  defaultAlgorithm,
  distinguishedName,
  signedCertificate,
  toBeSigned,
} from '../ca/to-be-signed.ts';
import { lintGate } from '../lint/lint-gate.ts';
import { readLintersFile } from '../lint/linters-file.ts';

const check = 'linters';

export async function checkLinters(
  file: string | undefined,
  products: readonly Pick<Product, 'id' | 'requiresLint'>[],
  callOut: CallOut,
  now: number,
): Promise<Diagnostic> {
  const gated = products.filter(({ requiresLint }) => requiresLint).map(({ id }) => id);
  try {
    const linters = readLintersFile(file);
    if (linters.length === 0) {
      if (gated.length === 0) return { check, state: 'ok', text: 'none, and no product requires one' };
      const text = `${gated.join(', ')} cannot be issued: no linter is configured`;
      return {
        check,
        state: 'problem',
        text,
        remedy: 'Set RESEAL_LINTERS_FILE, or remove requires_lint (docs/linters.md).',
      };
    }
    const verdict = await lintGate(linters, { callOut, atOnce: 2, imitate: () => sample(now) })(NO_BYTES, 'doctor');
    const names = linters.map(({ name }) => name).join(', ');
    if (verdict.kind !== 'failed') {
      return { check, state: 'ok', text: `${names}; required by ${gated.join(', ') || 'no product'}` };
    }
    const remedy = 'Correct the linters file, or what it names; until then products that require it are not issued.';
    return { check, state: gated.length > 0 ? 'problem' : 'warning', text: verdict.why, remedy };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { check, state: 'problem', text: error.message, remedy: error.remedy };
  }
}

const NO_BYTES = { issuerId: '', signHash: 'sha256', toBeSigned: new Uint8Array() } as const;

async function sample(now: number): Promise<Uint8Array> {
  const { spki, sign } = openIssuerKey('p256', await newIssuerKey('p256', 'issuing'));
  const name = distinguishedName({ commonName: 'A certificate to try linters with' });
  const algorithm = defaultAlgorithm('p256');
  const bytes = toBeSigned({
    ...{ serial: newSerial(now), algorithm, issuer: name, subject: name, spki, extensions: rootExtensions(spki) },
    ...{ notBefore: now, notAfter: now + DAY_MS },
  });
  return signedCertificate(bytes, algorithm, await sign(DEFAULT_HASH.p256, bytes));
}
