// reseal key create | list | disable | rotate
import { CREDENTIAL_KINDS, type Credential, credentialState } from '../domain/access/credential.ts';
import type { IssuedKey } from '../usecases/access/manage-access.ts';
import type { Command } from './command.ts';
import { duration, oneOf, table, time } from './values.ts';

const DEFAULT_OVERLAP = '24h';

export const keyView = (credential: Credential, now: number) => ({
  key_id: credential.keyId,
  account_id: credential.accountId,
  kind: credential.kind,
  state: credentialState(credential, now),
  created_at: time(credential.createdAt),
  expires_at: credential.expiresAt === null ? null : time(credential.expiresAt),
  last_used_at: credential.lastUsedAt === null ? null : time(credential.lastUsedAt),
});

export function keyTable(credentials: readonly Credential[], now: number): string {
  if (credentials.length === 0) return 'The account has no keys yet.';
  const rows = credentials.map((key) => [
    key.keyId,
    key.kind,
    credentialState(key, now),
    time(key.expiresAt),
    time(key.lastUsedAt),
  ]);
  return table(['KEY ID', 'KIND', 'STATE', 'EXPIRES', 'LAST USED'], rows);
}

const issuedText = ({ credential, authKey }: IssuedKey): string =>
  `X-CC-Key-ID: ${credential.keyId}\nX-CC-Auth-Key: ${authKey.reveal()}\n\nKeep the second line now: it is not shown again.`;

const issuedJson = (issued: IssuedKey, now: number) => ({
  key: keyView(issued.credential, now),
  auth_key: issued.authKey.reveal(),
});

export const keyCreate: Command = {
  store: 'existing',
  about: 'create a key for an account; its secret is shown once',
  examples: ['key create ACCOUNT', 'key create ACCOUNT --expires-in 90d', 'key create ACCOUNT --kind integration_key'],
  positionals: ['ACCOUNT'],
  options: {
    kind: { type: 'string', about: `${CREDENTIAL_KINDS.join(', ')} (default ${CREDENTIAL_KINDS[0]})` },
    'expires-in': { type: 'string', about: 'lifetime, such as 90d (default: does not expire)' },
  },
  async run({ positionals: [accountId = ''], options }, { withAccess, now }) {
    const kind = oneOf('kind', options.kind, CREDENTIAL_KINDS, 'standard');
    const lifetime = options['expires-in'];
    const expiresAt = lifetime === undefined ? null : now() + duration('expires-in', lifetime);
    const issued = await withAccess((access) => access.createKey({ accountId, kind, expiresAt }));
    return { json: issuedJson(issued, now()), text: issuedText(issued) };
  },
};

export const keyList: Command = {
  store: 'existing',
  about: 'list the keys of an account',
  examples: ['key list ACCOUNT'],
  positionals: ['ACCOUNT'],
  options: {},
  async run({ positionals: [accountId = ''] }, { withAccess, now }) {
    const credentials = await withAccess((access) => access.listKeys(accountId));
    return {
      json: { keys: credentials.map((credential) => keyView(credential, now())) },
      text: keyTable(credentials, now()),
    };
  },
};

export const keyDisable: Command = {
  store: 'existing',
  about: 'disable a key immediately and permanently',
  examples: ['key disable KEY_ID'],
  positionals: ['KEY_ID'],
  options: {},
  async run({ positionals: [keyId = ''] }, { withAccess, now }) {
    const credential = await withAccess((access) => access.disableKey(keyId));
    return {
      json: { key: keyView(credential, now()) },
      text: `Key ${keyId} is disabled: requests with it are refused from now on.`,
    };
  },
};

export const keyRotate: Command = {
  store: 'existing',
  about: 'create a successor; the old key keeps working for the overlap',
  examples: ['key rotate KEY_ID', 'key rotate KEY_ID --overlap 7d', 'key rotate KEY_ID --overlap 0s'],
  positionals: ['KEY_ID'],
  options: { overlap: { type: 'string', about: `how long the old key still works (default ${DEFAULT_OVERLAP})` } },
  async run({ positionals: [keyId = ''], options }, { withAccess, now }) {
    const overlapMs = duration('overlap', options.overlap ?? DEFAULT_OVERLAP);
    const { old, ...issued } = await withAccess((access) => access.rotateKey(keyId, overlapMs));
    return {
      json: { ...issuedJson(issued, now()), old: keyView(old, now()) },
      text: `${issuedText(issued)}\nThe old key ${old.keyId} works until ${time(old.expiresAt)}.`,
    };
  },
};
