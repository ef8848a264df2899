// Access tokens, and sessions and links of the console, that a clock which was wrong has left: none seems to last longer than any does, and none
// is in the way of the next.
import assert from 'node:assert/strict';
import { SESSION_MS } from '../../src/domain/console/session.ts';
import { hashOfSecret } from '../../src/usecases/access/authenticate-caller.ts';
import type { TestApp } from './app.ts';
import { post, signIn, signInAgain } from './console.ts';
import { newOrder } from './orders.ts';

type Column =
  | 'access_token.expires_at'
  | 'console_session.expires_at'
  | 'console_session.last_seen_at'
  | 'console_link.expires_at';
interface World {
  readonly app: TestApp;
  shift(column: Column, where: string): Promise<void>;
}
type Leave = (world: World) => Promise<() => Promise<void>>;

const leftSession =
  (column: Column): Leave =>
  async ({ app, shift }) => {
    const key = await app.newKey();
    const old = await signIn(app, key);
    await shift(column, `key_id = '${key.keyId}'`);
    return async () => {
      assert.equal((await signIn(app, key)).session.kind, 'account');
      const latest = await app.app.store.sessions.find(hashOfSecret(old.token), app.now() + SESSION_MS);
      assert.equal(latest, undefined);
    };
  };

export const LEFT_LOGINS = {
  async 'access_token.expires_at'({ app, shift }) {
    const { key } = await newOrder(app);
    const login = async (): Promise<string> => {
      const basic = `Basic ${Buffer.from(`${key.keyId}:${key.authKey}`).toString('base64')}`;
      const { body: answer } = await app.call('POST', '/csc/v2/auth/login', {
        headers: { authorization: basic },
        json: {},
      });
      return answer.access_token;
    };
    const use = async (token: string) =>
      (await app.call('POST', '/csc/v2/credentials/list', { headers: { authorization: `Bearer ${token}` }, json: {} }))
        .status;
    const token = await login();
    assert.equal(await use(token), 200);
    await shift('access_token.expires_at', `key_id = '${key.keyId}'`);
    return async () => {
      assert.equal(await use(token), 401, 'no token lasts so long, or it has ended');
      assert.equal(await use(await login()), 200);
    };
  },
  'console_session.expires_at': leftSession('console_session.expires_at'),
  'console_session.last_seen_at': leftSession('console_session.last_seen_at'),
  async 'console_link.expires_at'({ app, shift }) {
    const name = `operator-${app.app.newId()}`;
    await app.app.operators.create(name, 'view');
    const { token } = await app.app.operators.makeLink(name);
    await shift('console_link.expires_at', `operator_name = '${name}'`);
    return async () => {
      assert.equal((await post(app, 'operator-session', { token: token.reveal() })).status, 401);
      assert.equal((await signInAgain(app, name)).session.kind, 'operator');
    };
  },
} satisfies Record<Column, Leave>;
