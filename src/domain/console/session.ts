// Sessions of the console. A session stands for an API key, or for a named operator, and has no rights of its own: what it
// stands for is read at every request.

import { HOUR_MS, MINUTE_MS } from '../../kernel/durations.ts';
import type { Caller } from '../access/credential.ts';
import { invalid, Refusal } from '../errors.ts';

export const OPERATOR_ROLES = ['view', 'act'] as const;
/** `view` reads; `act` changes things, too. */
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

export interface Operator {
  readonly name: string;
  readonly role: OperatorRole;
  readonly createdAt: number;
  readonly disabledAt: number | null;
}

/** Without its token, of which the store knows a digest. */
export interface SessionRecord {
  readonly id: string;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  readonly expiresAt: number;
  /** Where it was begun: the IPv4 address, or the /64 of an IPv6 site. */
  readonly network: string;
}

/** Whose session it is. */
export type SessionOwner = { readonly keyId: string } | { readonly operatorName: string };

export type Session = SessionRecord &
  ({ readonly kind: 'account'; readonly caller: Caller } | { readonly kind: 'operator'; readonly operator: Operator });

export const ownerOf = (session: Session): SessionOwner =>
  session.kind === 'account' ? { keyId: session.caller.credential.keyId } : { operatorName: session.operator.name };

/** A working day. */
export const SESSION_MS = 12 * HOUR_MS;
/** Without a request for so long, a session ends. */
export const IDLE_MS = HOUR_MS;
/** Resolution of "last seen". Spares a write on every request. */
export const SEEN_EVERY_MS = MINUTE_MS;
/** For the way from a terminal to a browser beside it. */
export const LINK_MS = 5 * MINUTE_MS;

/** When a session of the key ends that begins now. It never outlives the key. */
export const sessionEnd = (keyExpiresAt: number | null, now: number): number =>
  Math.min(now + SESSION_MS, keyExpiresAt ?? Number.POSITIVE_INFINITY);

/** Lower case and plain: names are compared, typed and read aloud. */
const OPERATOR_NAME = /^[a-z0-9](?:[a-z0-9._@-]{0,62}[a-z0-9])?$/;

export function operatorName(text: string): string {
  if (OPERATOR_NAME.test(text)) return text;
  throw invalid(
    'name',
    'The name of an operator has 1 to 64 of a-z, 0-9 and, not at its ends, . _ @ -',
    '操作员名称须为 1 至 64 个字符，仅限 a-z、0-9，中间可含 . _ @ -。',
  );
}

export function requireRole({ role }: Operator, isChange: boolean): void {
  if (role === 'act' || !isChange) return;
  throw new Refusal('permission_denied', {
    reason: {
      en: 'An operator with the role view may not change anything. Ask an operator with the role act.',
      zh: '角色为 view 的操作员不能进行更改，请联系角色为 act 的操作员。',
    },
  });
}
