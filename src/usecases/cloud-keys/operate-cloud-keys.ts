// Cloud-held keys as whoever owns or operates them sees them, and the end of one. The operator needs no access code to
// destroy a key; use-cloud-key.ts asks the customer for it first.

import type { Actor } from '../../domain/access/credential.ts';
import type { AuditAction, AuditEntry } from '../../domain/access/ports.ts';
import type { CertificateRecord } from '../../domain/certificate/order.ts';
import type { Clock } from '../../domain/clock.ts';
import type { CloudKey } from '../../domain/cloud-keys/cloud-key.ts';
import { type CertificateStatus, certificateStatus } from '../../domain/cloud-keys/cloud-signing.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import type { Store } from '../../domain/store.ts';

export interface HeldKey {
  readonly key: CloudKey;
  /** Wrong access codes keep everybody from using it just now. */
  readonly isLocked: boolean;
  /** The latest that was issued on it. */
  readonly certificate: CertificateRecord | undefined;
  readonly certificateStatus: CertificateStatus | undefined;
}

export interface OperatorTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
}

export interface OperateCloudKeys {
  /** Refuses with `account_not_found`. */
  list(accountId: AccountId, page: Page): Promise<HeldKey[]>;
  /** The key as it is afterwards. */
  destroy(by: Actor, id: string): Promise<HeldKey>;
}

export function operateCloudKeys(tools: OperatorTools): OperateCloudKeys {
  return {
    async list(accountId, page) {
      if (!(await tools.store.accounts.find(accountId))) throw new Refusal('account_not_found');
      return await listKeys(tools, accountId, page);
    },
    destroy: (by, id) => destroyKey(tools, by, id),
  };
}

type Reading = Pick<OperatorTools, 'store' | 'now'>;

/** Destroyed ones too. */
export const listKeys = async (tools: Reading, accountId: AccountId, page: Page): Promise<HeldKey[]> =>
  await allHeld(tools, await tools.store.cloudKeys.list(accountId, page));

/** One after the other: a long list must not take every connection there is. */
export async function allHeld(tools: Reading, keys: readonly CloudKey[]): Promise<HeldKey[]> {
  const found: HeldKey[] = [];
  for (const key of keys) found.push(await held(tools, key));
  return found;
}

export async function showKey(tools: Reading, accountId: AccountId, id: string): Promise<HeldKey> {
  const key = await tools.store.cloudKeys.find(accountId, id);
  if (!key) throw new Refusal('cloud_key_not_found');
  return await held(tools, key);
}

export async function destroyKey(tools: OperatorTools, by: Actor, id: string): Promise<HeldKey> {
  const { store, now, newId } = tools;
  const { key } = await showKey(tools, by.accountId, id);
  const at = now();
  await store.transaction(async (tx) => {
    if (!(await tx.cloudKeys.destroy(by.accountId, id, at))) throw new Refusal('cloud_key_not_found');
    await tx.audit.append(keyAudit(newId(), at, by, 'cloud-key:destroyed', id, {}));
  });
  return await held(tools, { ...key, locked: null, hint: null, destroyedAt: at });
}

async function held({ store, now }: Reading, key: CloudKey): Promise<HeldKey> {
  const certificate = await store.certificates.findByCloudKey(key.accountId, key.id);
  return {
    key,
    isLocked: key.lockedUntil > now(),
    certificate,
    certificateStatus: certificate && certificateStatus(certificate, now()),
  };
}

export const keyAudit = (
  id: string,
  at: number,
  by: Actor,
  action: AuditAction,
  subject: string,
  details: AuditEntry['details'],
): AuditEntry => ({ id, at, ...by, action, subject, details });
