import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type ErrorCode, Refusal } from '../../../src/domain/errors.ts';
import { ERROR_TABLE } from '../../../src/http/front/error-table.ts';
import { errorResponse } from '../../../src/http/front/reply.ts';
import { startApp } from '../../support/app.ts';
import { CONTRACT, rule } from '../../support/contract.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const CODES = Object.keys(ERROR_TABLE) as ErrorCode[];

test('the error table and the contract have the same codes with the same statuses', () => {
  const lines = [...CONTRACT].filter(([id]) => id.startsWith('errors '));
  assert.deepEqual(lines.map(([id]) => id.slice('errors '.length)).sort(), [...CODES].sort());
  for (const [id, line] of lines) {
    const code = id.slice('errors '.length) as ErrorCode;
    assert.ok(line.includes(` is ${ERROR_TABLE[code].status}`), `${line} / table: ${ERROR_TABLE[code].status}`);
  }
});

test('every code has a message in both languages, and they differ', () => {
  for (const code of CODES) {
    const say = (locale: 'en' | 'zh-CN') => errorResponse(new Refusal(code), locale, 'id').body.message;
    assert.doesNotMatch(say('en'), /\p{Script=Han}/u, code);
    assert.match(say('zh-CN'), /\p{Script=Han}/u, code);
    assert.match(say('en'), /\.$/, `${code} is a sentence`);
  }
});

rule('errors route_not_found', 'is 404: the service has no such path', async () => {
  const key = await app.newKey();
  for (const path of [
    '/',
    '/nowhere',
    '/openapi/v3',
    '/openapi/v3/nowhere',
    '/openapi/v4/account',
    '/OPENAPI/v3/account',
  ]) {
    for (const method of ['GET', 'POST']) {
      const { status, body } = await app.call(method, path, { key });
      assert.deepEqual([status, body.code], [404, 'route_not_found'], `${method} ${path}`);
    }
  }
  const broken = await app.call('POST', '/nowhere', { raw: '{', headers: { 'content-type': 'application/json' } });
  assert.equal(broken.status, 404, 'the body is not read');
});

rule('errors method_not_allowed', 'is 405: the path exists, but not with that method', async () => {
  const key = await app.newKey();
  const { status, body } = await app.call('DELETE', '/openapi/v3/account', { key });
  assert.deepEqual([status, body.code], [405, 'method_not_allowed']);
});

rule('errors account_not_found', 'there is no account with that identifier', async () => {
  const refused = { code: 'account_not_found' };
  await assert.rejects(app.app.access.showAccount('nobody'), refused);
  await assert.rejects(app.app.access.listKeys('nobody'), refused);
  await assert.rejects(app.app.access.createKey({ accountId: 'nobody', kind: 'standard', expiresAt: null }), refused);
  assert.equal(ERROR_TABLE.account_not_found.status, 404);
});

rule('errors key_not_found', 'there is no key with that identifier', async () => {
  const refused = { code: 'key_not_found' };
  await assert.rejects(app.app.access.disableKey('nothing'), refused);
  await assert.rejects(app.app.access.rotateKey('nothing', 0), refused);
  assert.equal(ERROR_TABLE.key_not_found.status, 404);
});
