// API credentials and their permissions. The secret itself is never part of a Credential; the store keeps its hash.

import { HOUR_MS } from '../../kernel/durations.ts';
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
  /** Of the console; absent if the key itself was presented. */
  readonly sessionId?: string;
}

/** Who acted, for the audit log: an API caller, the operator or the service itself. */
export interface Actor {
  readonly accountId: AccountId;
  /**
   * A key id, the same after `console:` for a session of it, `cli:` and the operating system's user for an operator at the
   * command line, `operator:` and the name for one in the console, `acme:` and the id of an ACME account, or `service`.
   */
  readonly actor: string;
  readonly requestId: string | null;
}

const COMMAND_LINE = 'cli';
const CONSOLE_OPERATOR = 'operator:';
const CONSOLE = 'console:';
export const operatorActor = (user: string): string => `${COMMAND_LINE}:${user}`;
export const consoleOperatorActor = (name: string): string => `${CONSOLE_OPERATOR}${name}`;
/** Earlier versions recorded the operator without the user. */
export const isOperator = (actor: string): boolean =>
  actor === COMMAND_LINE || actor.startsWith(`${COMMAND_LINE}:`) || actor.startsWith(CONSOLE_OPERATOR);

export const callerActor = ({ credential: { keyId }, sessionId }: Pick<Caller, 'credential' | 'sessionId'>): string =>
  sessionId === undefined ? keyId : `${CONSOLE}${keyId}`;

/** The key of a caller, and whether it acted through a session. */
export const keyOfActor = (actor: string): { readonly keyId: string; readonly isSession: boolean } =>
  actor.startsWith(CONSOLE)
    ? { keyId: actor.slice(CONSOLE.length), isSession: true }
    : { keyId: actor, isSession: false };

/** All actors that a name in a filter stands for: a key id, an operator's name or a user name. */
export const actorsNamed = (name: string): readonly string[] => [
  name,
  operatorActor(name),
  consoleOperatorActor(name),
  `${CONSOLE}${name}`,
];

export type Action =
  | 'read'
  | 'order'
  | 'reissue'
  | 'reissue_signing'
  | 'revoke'
  | 'test_callback'
  | 'configure_callback'
  | 'change_account'
  | 'read_audit'
  | 'use_cloud_key';

type Permissions = Record<Action, boolean>;
const ORDERS_ONLY: Permissions = {
  read: true,
  order: true,
  reissue: true,
  reissue_signing: false,
  revoke: false,
  test_callback: false,
  configure_callback: false,
  change_account: false,
  read_audit: false,
  use_cloud_key: false,
};

/** The whole permission model: actions by kind of credential. */
const MAY: Record<CredentialKind, Permissions> = {
  standard: {
    read: true,
    order: true,
    reissue: true,
    reissue_signing: true,
    revoke: true,
    test_callback: true,
    configure_callback: true,
    change_account: true,
    read_audit: true,
    use_cloud_key: true,
  },
  // Manages certificates for their whole life. The other two are deployed on servers, where keys leak.
  cloud_manager_token: { ...ORDERS_ONLY, revoke: true },
  lite_client_oauth: ORDERS_ONLY,
  integration_key: ORDERS_ONLY,
};

/** What the kind may do. */
export const permissionsOf = (kind: CredentialKind): Action[] =>
  (Object.keys(MAY[kind]) as Action[]).filter((action) => MAY[kind][action]);

export const isPermitted = (kind: CredentialKind, action: Action): boolean => MAY[kind][action];

export function requirePermission(kind: CredentialKind, action: Action): void {
  if (isPermitted(kind, action)) return;
  throw new Refusal('permission_denied', {
    reason: {
      en: `A credential of kind ${kind} may not do this. Use a standard API key of the account.`,
      zh: `${kind} 类型的凭证无权执行此操作，请使用该账户的标准 API 密钥。`,
    },
  });
}

/** Call only after the secret matched: the state of a key must not leak to callers without its secret. */
export function requireUsable(credential: Credential, now: number): void {
  if (!isUsable(credential, now)) throw new Refusal('api_key_disabled');
}

export const isUsable = (credential: Credential, now: number): boolean =>
  credential.disabledAt === null && !isExpired(credential, now);

export function isExpired(credential: Credential, now: number): boolean {
  return credential.expiresAt !== null && credential.expiresAt <= now;
}

export const CREDENTIAL_STATES = ['active', 'expired', 'disabled'] as const;

export function credentialState(credential: Credential, now: number): (typeof CREDENTIAL_STATES)[number] {
  if (credential.disabledAt !== null) return 'disabled';
  return isExpired(credential, now) ? 'expired' : 'active';
}

/** An hour: what clients of the signing API assume where they ignore the answer. */
export const TOKEN_MS = HOUR_MS;

/** When an access token ends that is given to the key now. It never outlives the key. */
export const tokenEnd = ({ expiresAt }: Credential, now: number): number =>
  Math.min(now + TOKEN_MS, expiresAt ?? Number.POSITIVE_INFINITY);
