// Writes the audit log: who did what to which subject, in the transaction of the change it records.
import { userInfo } from 'node:os';
import { type Actor, operatorActor } from '../../domain/access/credential.ts';
import type { AuditAction, AuditEntry } from '../../domain/access/ports.ts';
import type { Clock } from '../../domain/clock.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';

/** An Actor, or one whose act concerns no single account. */
type AuditActor = Omit<Actor, 'accountId'> & Pick<AuditEntry, 'accountId'>;

/** Appends one row. `details` must never hold a secret. */
// biome-ignore lint/complexity/useMaxParams: the five words of an audit row, in the order they are read.
export type Audit = (
  tx: Pick<Repositories, 'audit'>,
  by: AuditActor,
  action: AuditAction,
  subject: string,
  details?: AuditEntry['details'],
) => Promise<void>;

interface AuditTools {
  readonly now: Clock;
  readonly newId: NewId;
}

/** The row, for a caller that writes it together with other things. */
export const auditEntry = (
  { now, newId }: AuditTools,
  { accountId, actor, requestId }: AuditActor,
  act: Pick<AuditEntry, 'action' | 'subject' | 'details'>,
): AuditEntry => ({ id: newId(), at: now(), accountId, actor, requestId, ...act });

export const auditLog =
  (tools: AuditTools): Audit =>
  // biome-ignore lint/complexity/useMaxParams: the five words of an audit row, in the order they are read.
  ({ audit }, by, action, subject, details = {}) =>
    audit.append(auditEntry(tools, by, { action, subject, details }));

/** Actor of background work: scheduled revocations, issuance and expiry of pending certificates. */
export const byService = (accountId: Actor['accountId']): Actor => ({ accountId, actor: 'service', requestId: null });

/** Who acts for the operator, on any account. */
export type OperatorCall = Pick<Actor, 'actor' | 'requestId'>;

/** The operating system's user who runs this process. */
const atCommandLine = (): OperatorCall => ({ actor: operatorActor(systemUser()), requestId: null });

/** Actor of CLI commands, unless another call is given: that of an operator in the console. */
export const byOperator = <Account extends AuditActor['accountId']>(accountId: Account, call = atCommandLine()) => ({
  accountId,
  ...call,
});

/** A user without an entry in the system's user table, as in many containers, is named by number. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
