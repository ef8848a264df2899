// Records of ceremonies: acts on the authority itself, with digests of what went in and what came out. Rows of the audit
// log, written in the transaction of the act and never deleted.
import { hash } from 'node:crypto';
import type { AuditEntry, CEREMONY_ACTIONS } from '../../domain/access/ports.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { auditEntry, byOperator } from '../access/audit.ts';

/** Files by name: certificates, requests, lists. Never a key that is not encrypted. */
export type Artifacts = Readonly<Record<string, string | Uint8Array>>;

export interface Act {
  readonly action: (typeof CEREMONY_ACTIONS)[number];
  /** The id of the issuer. */
  readonly subject: string;
  readonly facts?: AuditEntry['details'];
  readonly inputs?: Artifacts;
  readonly outputs?: Artifacts;
}

const digests = (artifacts: Artifacts, direction: 'input' | 'output') =>
  Object.fromEntries(
    Object.entries(artifacts).map(([name, content]) => [`${direction}_${name}_sha256`, hash('sha256', content)]),
  );

export const ceremonyDetails = ({ facts, inputs = {}, outputs = {} }: Omit<Act, 'action' | 'subject'>) => ({
  ...facts,
  ...digests(inputs, 'input'),
  ...digests(outputs, 'output'),
});

export async function recordCeremony(
  tools: { readonly now: Clock; readonly newId: NewId },
  tx: Pick<Repositories, 'audit'>,
  { action, subject, ...act }: Act,
): Promise<AuditEntry> {
  const entry = auditEntry(tools, byOperator(null), { action, subject, details: ceremonyDetails(act) });
  await tx.audit.append(entry);
  return entry;
}
