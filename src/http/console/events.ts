// GET /console/api/account/events: server-sent notices of what changes in the account, for as long as the session lives. A
// stream is bounded: a few per session, a share per account, a number in total, a buffer for readers that are slow, and it
// ends when the service stops.
import { Readable } from 'node:stream';
import { type CredentialKind, isPermitted } from '../../domain/access/credential.ts';
import { keyCounts } from '../../kernel/concurrency.ts';
import { SECOND_MS } from '../../kernel/durations.ts';
import { limitReached } from '../../usecases/access/in-flight.ts';
import type { FollowAccount, Notice } from '../../usecases/console/follow-account.ts';
import type { UseConsoleSessions } from '../../usecases/console/sessions.ts';
import type { Api } from '../front/api.ts';
import { callerOf } from '../front/authentication.ts';
import { tokenIn } from './session-cookie.ts';

export interface EventServices {
  readonly consoleSessions: UseConsoleSessions;
  readonly followAccount: FollowAccount;
  readonly publicUrl: () => string;
}

/** Of the six connections that a browser opens to one host, pages need the others. */
const STREAMS_PER_SESSION = 2;
const MAX_STREAMS = 256;
const MAX_UNREAD_BYTES = 64 * 1024;
/** Proxies close what is silent for a minute. */
const HEARTBEAT_MS = 20 * SECOND_MS;
/** The browser sends it back when it connects again: something may have changed meanwhile. */
const OPENING = 'retry: 3000\nid: 1\n\n';

export function eventStream(api: Api, { consoleSessions, followAccount, publicUrl }: EventServices): void {
  const open = new Set<AbortController>();
  const { count, add } = keyCounts();
  api.addHook('preClose', async () => {
    for (const stream of open) stream.abort();
  });

  api.get('/events', { config: { action: 'read' }, schema: { hide: true } }, async (request, reply) => {
    const { account, credential, sessionId = '' } = callerOf(request);
    const token = tokenIn(request.headers, publicUrl());
    // To a browser 204 says not to connect again, and is no error.
    if (count(sessionId) >= STREAMS_PER_SESSION) return reply.code(204).send();
    const free = MAX_STREAMS - open.size;
    if (free === 0) throw limitReached('service');
    // One account leaves as many as it holds, so that it cannot keep others out.
    if (count(account.id) >= free) throw limitReached('account');
    const slot = add([sessionId, account.id]);
    const ending = new AbortController();
    open.add(ending);
    const stream = new Readable({ read() {} });
    stream.once('close', () => {
      ending.abort();
      open.delete(ending);
      slot[Symbol.dispose]();
    });
    stream.push(OPENING);
    if (request.headers['last-event-id'] !== undefined) stream.push(messageOf({ type: 'reconnected' }));

    const follow = async () => {
      let sentAt = performance.now();
      for await (const all of followAccount(account.id, ending.signal)) {
        const notices = noticesFor(credential.kind, all);
        if (!(await consoleSessions.isLive(token)) || stream.readableLength > MAX_UNREAD_BYTES) break;
        if (notices.length === 0 && performance.now() - sentAt < HEARTBEAT_MS) continue;
        sentAt = performance.now();
        stream.push(notices.length === 0 ? ':\n\n' : notices.map(messageOf).join(''));
      }
    };
    // A store that fails ends the stream; the browser connects again.
    const end = () => stream.push(null);
    follow().then(end, end);
    reply.raw.once('close', () => stream.destroy());
    return reply.type('text/event-stream').header('x-accel-buffering', 'no').send(stream);
  });
}

/** Types are actions of the audit log, and deliveries belong to the callback: a key that may not read these is told less. */
function noticesFor(kind: CredentialKind, notices: readonly Notice[]): readonly Notice[] {
  const mayReadAudit = isPermitted(kind, 'read_audit');
  const seen = isPermitted(kind, 'configure_callback') ? notices : notices.filter(({ type }) => type !== 'delivery');
  return mayReadAudit ? seen : seen.map((one) => ({ ...one, type: 'changed' }));
}

const messageOf = (notice: object): string => `data: ${JSON.stringify(notice)}\n\n`;
