// Who is calling, and what a caller of that kind may do. The secret itself is never here: only its hash is kept.

import { Refusal } from '../errors.ts';
import type { AccountId } from '../ids.ts';
import type { Account } from './account.ts';

export const CREDENTIAL_KINDS = ['standard', 'cloud_manager_token', 'lite_client_oauth', 'integration_key'] as const;
/**
 * `standard`: an API key. `cloud_manager_token`: internal token of a cloud platform's certificate manager.
 * `lite_client_oauth`: OAuth credential of a lightweight client. `integration_key`: dedicated key of one integration.
 */
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

export interface Credential {
  readonly keyId: string;
  readonly accountId: AccountId;
  readonly kind: CredentialKind;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly disabledAt: number | null;
  readonly lastUsedAt: number | null;
}

export interface Caller {
  readonly account: Account;
  readonly credential: Credential;
}

/** Whose hand it was: that of a caller of the API, or the operator's own. */
export interface Actor {
  readonly accountId: AccountId;
  /** A key id, or `cli`. */
  readonly actor: string;
  readonly requestId: string | null;
}

export type Action =
  | 'read'
  | 'order'
  | 'reissue'
  | 'revoke'
  | 'test_callback'
  | 'configure_callback'
  | 'change_account'
  | 'use_cloud_key';

type Permissions = Record<Action, boolean>;
const ORDERS_ONLY: Permissions = {
  read: true,
  order: true,
  reissue: true,
  revoke: false,
  test_callback: false,
  configure_callback: false,
  change_account: false,
  use_cloud_key: false,
};

/** The whole permission model: which kind of credential may do what. */
export const MAY: Record<CredentialKind, Permissions> = {
  standard: {
    read: true,
    order: true,
    reissue: true,
    revoke: true,
    test_callback: true,
    configure_callback: true,
    change_account: true,
    use_cloud_key: true,
  },
  // It looks after certificates for their whole life; the other two sit on servers, where keys leak.
  cloud_manager_token: { ...ORDERS_ONLY, revoke: true },
  lite_client_oauth: ORDERS_ONLY,
  integration_key: ORDERS_ONLY,
};

export function requirePermission(caller: Caller, action: Action): void {
  const { kind } = caller.credential;
  if (MAY[kind][action]) return;
  throw new Refusal('permission_denied', {
    reason: {
      en: `A credential of kind ${kind} may not do this. Use a standard API key of the account.`,
      zh: `${kind} 类型的凭证无权执行此操作，请使用该账户的标准 API 密钥。`,
    },
  });
}

/** Asked only after the secret matched, so that nobody learns the state of a key that is not theirs. */
export function requireUsable(credential: Credential, now: number): void {
  if (credential.disabledAt === null && !isExpired(credential, now)) return;
  throw new Refusal('api_key_disabled');
}

export function isExpired(credential: Credential, now: number): boolean {
  return credential.expiresAt !== null && credential.expiresAt <= now;
}
