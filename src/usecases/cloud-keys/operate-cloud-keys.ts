// Lists and destroys cloud-held keys. The operator destroys a key without its access code; use-cloud-key.ts asks the
// customer for it first.
import type { Actor } from '../../domain/access/credential.ts';
import type { IssuedCertificate } from '../../domain/certificate/certificate.ts';
import type { Clock } from '../../domain/clock.ts';
import type { CloudKey } from '../../domain/cloud-keys/cloud-key.ts';
import { type CertificateStatus, certificateStatus } from '../../domain/cloud-keys/cloud-signing.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import type { Store } from '../../domain/store.ts';
import { auditLog } from '../access/audit.ts';

/** A cloud-held key with its current certificate. */
export interface HeldKey {
  readonly key: CloudKey;
  /** Locked out after wrong access codes: even the right code is refused. */
  readonly isLocked: boolean;
  /** The latest certificate issued on it. */
  readonly certificate: IssuedCertificate | undefined;
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
  /** Returns the destroyed key. */
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

type ReadTools = Pick<OperatorTools, 'store' | 'now'>;

/** Includes destroyed keys. */
export const listKeys = async (tools: ReadTools, accountId: AccountId, page: Page): Promise<HeldKey[]> =>
  await withCertificates(tools, await tools.store.cloudKeys.list(accountId, page));

/** Sequential, so that a long list does not exhaust the connection pool. */
export async function withCertificates(tools: ReadTools, keys: readonly CloudKey[]): Promise<HeldKey[]> {
  const found: HeldKey[] = [];
  for (const key of keys) found.push(await withCertificate(tools, key));
  return found;
}

export async function showKey(tools: ReadTools, accountId: AccountId, id: string): Promise<HeldKey> {
  const key = await tools.store.cloudKeys.find(accountId, id);
  if (!key) throw new Refusal('cloud_key_not_found');
  return await withCertificate(tools, key);
}

export async function destroyKey(tools: OperatorTools, by: Actor, id: string): Promise<HeldKey> {
  const { store, now } = tools;
  const audit = auditLog(tools);
  const { key } = await showKey(tools, by.accountId, id);
  const at = now();
  await store.transaction(async (tx) => {
    if (!(await tx.cloudKeys.destroy(by.accountId, id, at))) throw new Refusal('cloud_key_not_found');
    await audit(tx, by, 'cloud-key:destroyed', id);
  });
  return await withCertificate(tools, { ...key, wrappedKey: null, hint: null, destroyedAt: at });
}

async function withCertificate({ store, now }: ReadTools, key: CloudKey): Promise<HeldKey> {
  const certificate = await store.certificates.findByCloudKey(key.accountId, key.id);
  return {
    key,
    isLocked: key.lockedUntil > store.sharedNow(),
    certificate,
    certificateStatus: certificate && certificateStatus(certificate, now()),
  };
}
