import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, inspect } from 'node:util';
import { Secret } from '../../src/domain/secret.ts';
import { errorLine, mask } from '../../src/kernel/log.ts';

const TEXT = 'correct horse battery staple';

test('a secret prints as [secret] everywhere but in reveal()', () => {
  const secret = new Secret(TEXT);
  assert.equal(secret.reveal(), TEXT);
  const shown = [
    `${secret}`,
    String(secret),
    JSON.stringify({ secret }),
    inspect(secret),
    inspect({ deep: { secret } }, { showHidden: true, depth: 9 }),
    format('%s %o %O %j', secret, secret, secret, secret),
    new Error(`with ${secret}`).stack ?? '',
    JSON.stringify(Object.entries(secret)),
    JSON.stringify(structuredClone({ ...secret })),
  ];
  for (const text of shown) assert.ok(!text.includes('horse'), text);
});

test('messages of unexpected errors are masked', () => {
  for (const message of [
    `Unexpected token in "${TEXT}"`,
    `Unexpected token in '${TEXT}'`,
    'bad key 8x5VnaH-XhrGs6QMSi2dGVhvitV4C3m_ad9Kxexrs5M here',
    'PIN 4711 is wrong',
  ]) {
    const masked = mask(message);
    assert.doesNotMatch(masked, /horse|8x5V|4711/);
    assert.match(masked, /…/);
  }
  assert.equal(mask('no such table: account'), 'no such table: account');
  assert.ok(mask('x '.repeat(10_000)).length <= 500);
});

test('any thrown value becomes a log line', () => {
  for (const thrown of [new Error('x'), 'text', null, undefined, 7, { code: 'X' }, Object.create(null)]) {
    const line = errorLine(thrown, 'id');
    assert.equal(line.event, 'error');
    assert.equal(typeof line.name, 'string');
  }
  assert.deepEqual(errorLine(Object.assign(new Error('m'), { code: 'E1' }), null).code, 'E1');
});
