// Reads a CSR and inspects its key in a worker thread: csr-findings.ts is what runs there.
import type { InspectedCsr, KeyType, PublicKey } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { JobRunner } from './pool.ts';

export async function inspectCsr(pool: JobRunner, text: string): Promise<InspectedCsr> {
  const { fault, weakness, type, bits, fingerprint, spki } = await pool.run('inspectCsr', { text });
  const key: PublicKey = { type: type as KeyType, bits, fingerprint, spki };
  return {
    publicKey() {
      refuse(fault);
      return key;
    },
    requireStrong: () => refuse(weakness),
  };
}

function refuse(fault: string): void {
  if (fault !== '') throw new Refusal('invalid_csr', JSON.parse(fault));
}
