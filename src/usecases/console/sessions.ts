// Signing in to the console: key id and secret, or the token of a single-use link, are exchanged once for a session. The
// store keeps digests of tokens only. What a session stands for is admitted at every request by the same code as a key that
// is presented itself.
import { type Caller, callerActor, consoleOperatorActor, isUsable } from '../../domain/access/credential.ts';
import type { AuditEntry } from '../../domain/access/ports.ts';
import { type Clock, isAhead } from '../../domain/clock.ts';
import {
  type Operator,
  ownerOf,
  SEEN_EVERY_MS,
  type Session,
  type SessionOwner,
  type SessionRecord,
  sessionEnd,
} from '../../domain/console/session.ts';
import { Refusal } from '../../domain/errors.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Rate } from '../../domain/rate.ts';
import { Secret } from '../../domain/secret.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import { SECOND_MS } from '../../kernel/durations.ts';
import { auditLog } from '../access/audit.ts';
import {
  type AuthenticateCaller,
  admitCaller,
  hashOfSecret,
  type PresentedCredential,
} from '../access/authenticate-caller.ts';

/** Where a request comes from. */
export interface Origin {
  readonly network: string;
  readonly requestId: string;
}

export interface SignedIn {
  readonly token: Secret;
  readonly session: Session;
}

export interface UseConsoleSessions {
  signIn(presented: PresentedCredential, from: Origin): Promise<SignedIn>;
  /** With the token of a single-use link. */
  signInOperator(link: Secret, from: Origin): Promise<SignedIn>;
  /** Undefined if there is no such session, or it has ended. Refuses one whose key or account is refused. */
  find(token: Secret | undefined): Promise<Session | undefined>;
  /** Refuses all but sessions of a key. */
  authenticateCaller(token: Secret | undefined): Promise<Caller>;
  /** Refuses all but sessions of an operator. */
  authenticateOperator(token: Secret | undefined): Promise<Operator>;
  /** Whether `find` would find it. Does not count as a use of the session: an open page is idle, too. */
  isLive(token: Secret | undefined): Promise<boolean>;
  /** Ends the session, if there is one: also when its key is refused. */
  signOut(token: Secret | undefined, requestId: string): Promise<void>;
  /** Live ones of the same key or operator, the newest first. */
  list(session: Session): Promise<SessionRecord[]>;
  /** Ends a session of the same key or operator, which may be this one. */
  end(session: Session, id: string, requestId: string): Promise<void>;
}

interface SessionTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly authenticate: AuthenticateCaller;
}

export const TOKEN_BYTES = 32;
/** Per key or operator: browsers that people leave signed in. A further sign-in ends the oldest. */
const MAX_SESSIONS = 20;
/** Of one network, successful or not. By key there is no limit: others must not be able to lock its holder out. */
const SIGN_IN_RATE: Rate = { burst: 20, everyMs: 3 * SECOND_MS };

export function useConsoleSessions(tools: SessionTools): UseConsoleSessions {
  const { store, now, newId, randomBytes, authenticate } = tools;
  const audit = auditLog({ now, newId });
  const admit = admitCaller(store, now);
  const touching = new Set<string>();

  async function limit({ network }: Origin): Promise<void> {
    const waitMs = await store.rateLimits.take(`console-sign-in ${network}`, SIGN_IN_RATE, store.sharedNow());
    if (waitMs === 0) return;
    throw new Refusal('request_too_fast', {
      retryAfterSeconds: Math.ceil(waitMs / SECOND_MS),
      reason: {
        en: 'Too many attempts to sign in from your network. Wait for as long as Retry-After says, and try again.',
        zh: '您所在网络的登录尝试过于频繁，请在 Retry-After 响应头给出的时间后重试。',
      },
    });
  }

  /** A new token each time: one that was known before signing in is worth nothing. */
  async function begin(
    tx: Repositories,
    owner: SessionOwner,
    { network, expiresAt }: { readonly network: string; readonly expiresAt: number },
  ): Promise<{ readonly token: Secret; readonly record: SessionRecord }> {
    const token = new Secret(Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url'));
    const at = tx.sharedNow();
    const record = { id: newId(), createdAt: at, lastSeenAt: at, expiresAt, network };
    await tx.sessions.insert({ ...record, tokenHash: hashOfSecret(token.reveal()) }, owner, MAX_SESSIONS);
    return { token, record };
  }

  // Fire and forget: a store that can read but not write must still authenticate.
  function touch({ id, lastSeenAt }: SessionRecord): void {
    const at = store.sharedNow();
    if (isAhead(lastSeenAt + SEEN_EVERY_MS, at, SEEN_EVERY_MS) || touching.has(id)) return;
    touching.add(id);
    const done = () => touching.delete(id);
    store.sessions.touch(id, at).then(done, done);
  }

  const read = async (token: Secret | undefined): Promise<Session | undefined> =>
    token && (await store.sessions.find(hashOfSecret(token.reveal()), store.sharedNow()));

  async function find(token: Secret | undefined): Promise<Session | undefined> {
    const session = await read(token);
    if (session?.kind === 'operator' && session.operator.disabledAt !== null) return undefined;
    if (session?.kind === 'account') admit(session.caller);
    if (session) touch(session);
    return session;
  }

  const end = (session: Session, id: string, requestId: string): Promise<void> =>
    store.transaction(async (tx) => {
      if (!(await tx.sessions.delete(id, ownerOf(session)))) throw new Refusal('session_not_found');
      const action = id === session.id ? 'console:signed_out' : 'console:session_ended';
      await audit(tx, actorOf(session, requestId), action, id);
    });

  return {
    async signIn(presented, from) {
      await limit(from);
      const caller = await authenticate(presented).catch((error) => {
        throw isUnauthenticated(error) ? wrongKey() : error;
      });
      const { account, credential } = caller;
      const expiresAt = sessionEnd(credential.expiresAt, store.sharedNow());
      return await store.transaction(async (tx) => {
        const { token, record } = await begin(tx, { keyId: credential.keyId }, { ...from, expiresAt });
        const session: Session = { ...record, kind: 'account', caller: { ...caller, sessionId: record.id } };
        const by = { accountId: account.id, actor: callerActor(session.caller), requestId: from.requestId };
        await audit(tx, by, 'console:signed_in', record.id, { network: from.network });
        return { token, session };
      });
    },

    async signInOperator(link, from) {
      await limit(from);
      return await store.transaction(async (tx) => {
        const operator = await tx.loginLinks.redeem(hashOfSecret(link.reveal()), tx.sharedNow());
        if (!operator || operator.disabledAt !== null) throw usedLink();
        const expiresAt = sessionEnd(null, tx.sharedNow());
        const { token, record } = await begin(tx, { operatorName: operator.name }, { ...from, expiresAt });
        const session: Session = { ...record, kind: 'operator', operator };
        await audit(tx, actorOf(session, from.requestId), 'console:signed_in', record.id, { network: from.network });
        return { token, session };
      });
    },

    find,

    async authenticateCaller(token) {
      const session = await find(token);
      if (session?.kind === 'account') return session.caller;
      throw session ? ofOtherKind('account') : signedOut();
    },

    async authenticateOperator(token) {
      const session = await find(token);
      if (session?.kind === 'operator') return session.operator;
      throw session ? ofOtherKind('operator') : signedOut();
    },

    async isLive(token) {
      const session = await read(token);
      if (session?.kind !== 'account') return session?.operator.disabledAt === null;
      const { account, credential } = session.caller;
      return isUsable(credential, now()) && account.suspendedAt === null;
    },

    async signOut(token, requestId) {
      const session = await read(token);
      if (session) await end(session, session.id, requestId);
    },

    list: (session) => store.sessions.listOf(ownerOf(session), store.sharedNow()),

    end,
  };
}

const actorOf = (session: Session, requestId: string): Pick<AuditEntry, 'accountId' | 'actor' | 'requestId'> =>
  session.kind === 'account'
    ? { accountId: session.caller.account.id, actor: callerActor(session.caller), requestId }
    : { accountId: null, actor: consoleOperatorActor(session.operator.name), requestId };

const isUnauthenticated = (error: unknown): boolean =>
  error instanceof Refusal && error.code === 'unauthenticated_request';

const unauthenticated = (en: string, zh: string): Refusal =>
  new Refusal('unauthenticated_request', { reason: { en, zh } });

const wrongKey = () =>
  unauthenticated(
    'Key id and secret do not match. Compare both with what "reseal key create" has shown.',
    '密钥 ID 与密钥不匹配，请与 "reseal key create" 显示的内容核对。',
  );

const usedLink = () =>
  unauthenticated(
    'This link was used, has expired, or is not complete. Make a new one: reseal console login',
    '该链接已使用、已过期或不完整，请重新生成：reseal console login',
  );

export const signedOut = () =>
  unauthenticated(
    'You are not signed in, or your session has ended. Sign in at /console.',
    '您尚未登录，或会话已结束，请在 /console 登录。',
  );

const ofOtherKind = (wanted: Session['kind']) =>
  wanted === 'account'
    ? unauthenticated(
        'You are signed in as an operator. Sign in with a key of the account.',
        '您以操作员身份登录，请使用账户的密钥登录。',
      )
    : unauthenticated(
        'You are signed in with a key. Sign in as an operator: reseal console login',
        '您使用密钥登录，请以操作员身份登录：reseal console login',
      );
