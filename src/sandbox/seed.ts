// The sandbox's demo accounts. Made once, in one transaction with the sealed note that remembers their keys, so that
// ids and keys stay the same over restarts even if sandbox.json is lost.
import type { AccountKind } from '../domain/access/account.ts';
import { CREDENTIAL_KINDS, type CredentialKind } from '../domain/access/credential.ts';
import type { Store } from '../domain/store.ts';
import type { ManageAccess } from '../usecases/access/manage-access.ts';
import type { SandboxFile } from './folder.ts';

export type SandboxAccounts = SandboxFile['accounts'];

const DEMO_ACCOUNTS: readonly { name: string; kind: AccountKind; credentials: readonly CredentialKind[] }[] = [
  { name: 'Sandbox', kind: 'standard', credentials: CREDENTIAL_KINDS },
  { name: 'Sandbox managed PKI', kind: 'managed_pki', credentials: ['standard'] },
  { name: 'Sandbox without callback', kind: 'standard', credentials: ['standard'] },
  { name: 'Sandbox with paused callback', kind: 'standard', credentials: ['standard'] },
];

const NOTE = 'sandbox-accounts';

export async function seedAccounts(store: Store, access: ManageAccess): Promise<SandboxAccounts> {
  return await store.transaction(async (tx) => {
    const note = await tx.secrets.get(NOTE);
    if (note !== undefined) return JSON.parse(note) as SandboxAccounts;
    const accounts: SandboxAccounts[number][] = [];
    for (const { name, kind, credentials: kinds } of DEMO_ACCOUNTS) {
      const { id } = await access.createAccountIn(tx, { name, kind, locale: 'en' });
      const credentials: SandboxAccounts[number]['credentials'][number][] = [];
      for (const kind of kinds) {
        const { credential, authKey } = await access.createKeyIn(tx, { accountId: id, kind, expiresAt: null });
        credentials.push({ kind, key_id: credential.keyId, auth_key: authKey.reveal() });
      }
      accounts.push({ id, name, kind, credentials, callback: null });
    }
    await tx.secrets.claim(NOTE, JSON.stringify(accounts));
    return accounts;
  });
}
