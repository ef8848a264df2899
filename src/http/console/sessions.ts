// /console/api/session and /console/api/sessions: signing in and out, and the sessions of the same key or operator.
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { permissionsOf } from '../../domain/access/credential.ts';
import { OPERATOR_ROLES, type Session, type SessionRecord } from '../../domain/console/session.ts';
import { Secret } from '../../domain/secret.ts';
import { SECOND_MS } from '../../kernel/durations.ts';
import { type Origin, type SignedIn, signedOut } from '../../usecases/console/sessions.ts';
import type { Api } from '../front/api.ts';
import { networkOf } from '../front/remote-network.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, list, nullable, word } from '../front/values.ts';
import { type OperatorScopeServices, requireOperatorAddress } from './operator-scope.ts';
import { clearedCookie, sessionCookie, tokenIn } from './session-cookie.ts';

const SessionView = Type.Object({
  /** `none`: not signed in, which a page asks for and which is no error. */
  kind: word('ConsoleSessionKind', ['account', 'operator', 'none']),
  id: nullable(Type.String()),
  account: nullable(Type.Object({ id: Type.String(), name: Type.String() })),
  key_id: nullable(Type.String()),
  permissions: list(Type.String()),
  operator: nullable(Type.Object({ name: Type.String(), role: word('OperatorRole', OPERATOR_ROLES) })),
  expires_at: nullable(DateTime),
});

const ListedSession = Type.Object({
  id: Type.String(),
  is_current: Type.Boolean(),
  created_at: DateTime,
  last_seen_at: DateTime,
  expires_at: DateTime,
  network: Type.String(),
});

const NONE: Type.Static<typeof SessionView> = {
  ...{ kind: 'none', id: null, account: null, key_id: null, permissions: [], operator: null, expires_at: null },
};

const session = { hide: true, response: answers('ConsoleSession', SessionView) } as const;

export function sessionOperations(api: Api, services: OperatorScopeServices): void {
  const { consoleSessions, publicUrl } = services;
  const presented = ({ headers }: FastifyRequest) => tokenIn(headers, publicUrl());
  const current = async (request: FastifyRequest): Promise<Session> => {
    const found = await consoleSessions.find(presented(request));
    if (!found) throw signedOut();
    return found;
  };
  /** The browser forgets the session that it had, so that one ends: no one could sign it out any more. */
  const begin = async (request: FastifyRequest, reply: FastifyReply, { token, session: begun }: SignedIn) => {
    await consoleSessions.signOut(presented(request), request.id);
    const seconds = Math.floor((begun.expiresAt - begun.createdAt) / SECOND_MS);
    reply.header('set-cookie', sessionCookie(publicUrl(), token, seconds));
    return success(viewOf(begun));
  };

  const KeyBody = Type.Object({ key_id: Type.String(), secret: Type.String() });
  api.post('/session', { schema: { ...session, body: KeyBody } }, async (request, reply) => {
    const { key_id: keyId, secret } = request.body;
    const signedIn = await consoleSessions.signIn({ keyId, authKey: new Secret(secret) }, originOf(request));
    return await begin(request, reply, signedIn);
  });

  const LinkBody = Type.Object({ token: Type.String() });
  api.post('/operator-session', { schema: { ...session, body: LinkBody } }, async (request, reply) => {
    requireOperatorAddress(request, services);
    const signedIn = await consoleSessions.signInOperator(new Secret(request.body.token), originOf(request));
    return await begin(request, reply, signedIn);
  });

  api.get('/session', { schema: session }, async (request) => {
    const found = await consoleSessions.find(presented(request));
    return success(found ? viewOf(found) : NONE);
  });

  api.delete('/session', { schema: session }, async (request, reply) => {
    await consoleSessions.signOut(presented(request), request.id);
    reply.header('set-cookie', clearedCookie(publicUrl()));
    return success(NONE);
  });

  const Sessions = Type.Object({ sessions: list(ListedSession) });
  const listed = { hide: true, response: answers('ConsoleSessions', Sessions) } as const;
  const listFor = async (own: Session) =>
    success({ sessions: (await consoleSessions.list(own)).map((one) => listedView(one, own)) });
  api.get('/sessions', { schema: listed }, async (request) => listFor(await current(request)));

  api.delete(
    '/sessions/:id',
    { schema: { ...listed, params: Type.Object({ id: Type.String() }) } },
    async (request, reply) => {
      const own = await current(request);
      await consoleSessions.end(own, request.params.id, request.id);
      if (own.id === request.params.id) reply.header('set-cookie', clearedCookie(publicUrl()));
      return await listFor(own);
    },
  );
}

const originOf = (request: FastifyRequest): Origin => ({ network: networkOf(request.ip), requestId: request.id });

const moment = (ms: number): string => new Date(ms).toISOString();

function viewOf(one: Session): Type.Static<typeof SessionView> {
  const common = { ...NONE, kind: one.kind, id: one.id, expires_at: moment(one.expiresAt) };
  if (one.kind === 'operator') return { ...common, operator: { name: one.operator.name, role: one.operator.role } };
  const { account, credential } = one.caller;
  return {
    ...common,
    account: { id: account.id, name: account.name },
    key_id: credential.keyId,
    permissions: permissionsOf(credential.kind),
  };
}

const listedView = (one: SessionRecord, own: Session): Type.Static<typeof ListedSession> => ({
  id: one.id,
  is_current: one.id === own.id,
  created_at: moment(one.createdAt),
  last_seen_at: moment(one.lastSeenAt),
  expires_at: moment(one.expiresAt),
  network: one.network,
});
