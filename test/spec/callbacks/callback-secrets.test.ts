// The access key reaches the receiver and nothing else, whatever the receiver does with it. The receivers here count as
// public, because responses of private ones are not quoted at all.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Answer, Key } from '../../support/app.ts';
import { callbackIn, resultOf, startPublicCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { HOST } from '../../support/outside.ts';

const world = await startPublicCallbackApp();
after(() => world[Symbol.asyncDispose]());
const { app, receiver, outside, url } = world;

const CUT = 16 * 1024;
const answering = (status: number, body: string | Uint8Array, headers = ''): void => {
  receiver.script = (socket) => {
    socket.write(`HTTP/1.1 ${status} X\r\n${headers}Connection: close\r\n\r\n`);
    socket.end(body);
  };
};

/** The quoted excerpt of a response, also after a failure caused by it. */
async function excerpt(key: Key, json: unknown, body: string | Uint8Array, status = 200): Promise<string> {
  answering(status, body);
  const answer = await world.test(key, json);
  assert.equal(resultOf(answer), status === 200 ? '200 success' : '422 callback_response_not_200');
  return (status === 200 ? answer.body.data.callback : answer.body.details).excerpt;
}

const hex = (text: string) => Buffer.from(text).toString('hex');
const base64 = (text: string) => Buffer.from(text).toString('base64');
const base64url = (text: string) => Buffer.from(text).toString('base64url');
const inJson = (text: string) => JSON.stringify(text).slice(1, -1);

/** Encodings in which a receiver may echo a key. */
const FORMS: readonly (readonly [string, (key: string) => string])[] = [
  ['raw', (key) => key],
  ['JSON', inJson],
  ['percent', encodeURIComponent],
  ['base64', base64],
  ['base64url', base64url],
  ['hex', hex],
];
/** Variants of other encoders: Go and PHP escape more in JSON, and hexadecimal digits may be of either case. */
const SPELLINGS: typeof FORMS = [
  ['hex in capitals', (key) => hex(key).toUpperCase()],
  ['percent in small letters', (key) => encodeURIComponent(key).replace(/%../g, (one) => one.toLowerCase())],
  ['percent, every character', (key) => hex(key).replace(/../g, '%$&')],
  ['form', (key) => new URLSearchParams({ k: key }).toString().slice(2)],
  ['JSON of PHP', (key) => inJson(key).replaceAll('/', '\\/')],
  ['JSON of Go', (key) => inJson(key).replace(/[<>&]/g, (one) => `\\u00${hex(one)}`)],
  [
    'HTML',
    (key) => key.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
  ],
];

/** One with characters that need escaping, one for each base64 remainder, and one of maximum length. */
const KEYS = [
  'a"b\\c/d e+f%g&h<i>j=k?',
  'Sesame-47110',
  'Sesame-471101',
  'Sesame-4711012',
  Array.from({ length: 256 }, (_, index) => String.fromCharCode(33 + ((index * 37) % 94))).join(''),
];

/** Asserts that the text contains no encoding of the key, nor a part of it that would help guessing. */
function requireUntold(text: string, key: string, what: string): void {
  for (const [form, write] of [...FORMS, ...SPELLINGS]) {
    const written = write(key).replace(/=+$/, '');
    assert.ok(!text.includes(written), `${what}: the key as ${form} in ${text.slice(0, 500)}`);
    for (let at = 0; at + 12 <= written.length; at += 1) {
      assert.ok(
        !text.includes(written.slice(at, at + 12)),
        `${what}: a part of the key as ${form} in ${text.slice(0, 500)}`,
      );
    }
  }
}

/** All that the caller or the operator can read afterwards. */
async function requireNoTrace(accountId: string, key: string, answers: readonly Answer[]): Promise<void> {
  for (const { text, headers } of answers) requireUntold(`${text} ${JSON.stringify([...headers])}`, key, 'an answer');
  requireUntold(app.output, key, 'the log');
  requireUntold((await app.call('GET', '/metrics')).text, key, 'the metrics');
  requireUntold(JSON.stringify(await app.app.store.audit.listOf(accountId, { limit: 1_000 })), key, 'the audit');
  const files = readdirSync(app.folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const contents = files.map(({ name, parentPath }) => readFileSync(join(parentPath, name), 'latin1'));
  assert.ok(
    contents.some((content) => content.includes(url('/saved'))),
    'the saved settings are in the file',
  );
  for (const [index, content] of contents.entries()) {
    for (const [form, write] of FORMS) {
      assert.ok(!content.includes(write(key)), `${files[index]?.name} has the key as ${form}`);
    }
  }
}

rule(
  'callback-test 18',
  'appears in no log line, metric, error or answer, even if the receiver echoes it',
  async () => {
    for (const accessKey of KEYS) {
      const key = await app.newKey();
      const answers = [await world.save(key, { url: url('/saved'), access_key: accessKey })];
      for (const [, write] of FORMS) {
        for (const status of [200, 500, 302]) {
          const echo = write(accessKey);
          answering(
            status,
            `you sent ${echo}, didn't you: {"X-CC-Callback-Auth":["${echo}"]} ${echo}`,
            `X-Echo: ${echo}\r\n`,
          );
          answers.push(await world.test(key));
          answers.push(await world.test(key, { url: url('/other'), access_key: accessKey }));
          assert.equal(callbackIn(receiver).headers['x-cc-callback-auth'], accessKey);
        }
      }
      // Failures before there is a response, and refusals before any call.
      for (const address of ['https://missing.example.test/', 'https://10.0.0.1/', 'http://x/', 'https://a b/', 5]) {
        answers.push(await world.test(key, { url: address, access_key: accessKey }));
      }
      answers.push(await world.test(key, { url: url(), access_key: `${accessKey}\n` }));
      answers.push(await world.test(key, { url: url(), access_key: accessKey.padEnd(257, accessKey) }));
      answers.push(
        await app.call('PUT', '/openapi/v3/account/callback/test', { key, raw: `{"access_key":"${accessKey}"` }),
      );
      await requireNoTrace(key.accountId, accessKey, answers);
    }
  },
);

rule('callback-test 18', 'The `access_key` appears in no log line, metric, error or answer', async () => {
  const key = await app.newKey();
  for (const accessKey of KEYS) {
    for (const [form, write] of FORMS) {
      const echo = write(accessKey);
      for (const kept of [5, 9, 16, echo.length - 1].filter((count) => count < echo.length)) {
        // Control characters are not quoted, so the excerpt ends exactly at the cut.
        const body = `${'\0'.repeat(CUT - kept)}${echo}${'x'.repeat(1_000)}`;
        const quoted = await excerpt(key, { url: url(), access_key: accessKey }, body);
        assert.equal(quoted.replace(/=+$/, ''), '[access_key]', `${form}, cut after ${kept} of ${echo.length}`);
      }
      // The same when the receiver truncates its response.
      answering(200, echo.replace(/=+$/, '').slice(0, -2), 'Content-Length: 5000\r\n');
      const { body } = await world.test(key, { url: url(), access_key: accessKey });
      assert.equal(body.data.callback.excerpt, '[access_key]', form);
    }
  }
});

rule('callback-test 18', 'in no log line, metric, error or answer, even if the receiver echoes it', async () => {
  // Removing characters from the excerpt must not reveal the key.
  const key = await app.newKey();
  for (const between of ['\0', '\n', '\r\n', '\t', '\u200b', '\u2028', '\x1b']) {
    const quoted = await excerpt(
      key,
      { url: url(), access_key: 'open sesame 4711' },
      `it is open${between}sesame${between}4711.`,
    );
    assert.doesNotMatch(quoted, /open sesame 4711/, JSON.stringify(between));
  }
});

rule('callback-test 18', 'no log line, metric, error or answer, even if the receiver echoes it', async () => {
  const key = await app.newKey();
  const missed = new Set<string>();
  for (const accessKey of KEYS) {
    for (const [form, write] of SPELLINGS) {
      const quoted = await excerpt(key, { url: url(), access_key: accessKey }, `echo: ${write(accessKey)};`);
      if (quoted !== 'echo: [access_key];') missed.add(form);
    }
  }
  assert.deepEqual([...missed], []);
});

rule('callback-test.answer 4', 'quotes no more than 2 KiB of what the receiver answered', async () => {
  const key = await app.newKey();
  const json = { url: url(), access_key: 'kkkk' };
  const bytes = (text: string) => Buffer.byteLength(text);
  for (const status of [200, 404]) {
    assert.equal(await excerpt(key, json, '', status), '');
    assert.equal(await excerpt(key, json, 'It works. 好的', status), 'It works. 好的');
    assert.equal(await excerpt(key, json, 'x'.repeat(2_048), status), 'x'.repeat(2_048));
    for (const length of [2_049, 20_000, 200_000]) {
      assert.equal(await excerpt(key, json, 'x'.repeat(length), status), 'x'.repeat(2_048));
    }
    for (const [character, size] of [
      ['é', 2],
      ['证', 3],
      ['🔒', 4],
    ] as const) {
      const quoted = await excerpt(key, json, character.repeat(3_000), status);
      assert.equal(quoted, character.repeat(Math.floor(2_048 / size)), 'no character is cut in two');
      assert.ok(bytes(quoted) <= 2_048);
    }
    assert.ok(
      bytes(await excerpt(key, json, Buffer.alloc(5_000, 0xff), status)) <= 2_048,
      'nor is invalid UTF-8 longer',
    );
    // The mask is longer than the text it replaces.
    const masked = await excerpt(key, json, 'kkkk.'.repeat(3_000), status);
    assert.ok(bytes(masked) <= 2_048 && masked.startsWith('[access_key].[access_key].'), masked);
  }
});

rule('callback-test.answer 4', 'without control characters and with the `access_key` masked', async () => {
  const key = await app.newKey();
  const json = { url: url(), access_key: 'Sesame-4711' };
  assert.equal(await excerpt(key, json, 'before Sesame-4711 after'), 'before [access_key] after');
  assert.equal(await excerpt(key, json, 'Sesame-4711Sesame-4711', 500), '[access_key][access_key]');
  const controls = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).filter((one) =>
    /\p{Cc}/u.test(one),
  );
  const others = ['\u202e', '\u200b', '\ufeff', '\u2028', '\u2029', '\u2066'];
  for (const control of [...controls, ...others]) {
    const quoted = await excerpt(key, json, `a${control}b${control}${control}c`);
    assert.match(quoted, /^a ?b ?c$/, JSON.stringify(control));
  }
  assert.equal(await excerpt(key, json, '\x1b[31mred\x1b[0m\r\nX-Evil: 1\r\n'), '[31mred [0m X-Evil: 1');
});

rule('callback-test 17', 'Every test leaves an audit record with the host it went to.', async () => {
  const key = await app.newKey();
  outside.dns.set('private.example.test', 'A', ['10.0.0.1']);
  await world.save(key, { url: url('/saved'), access_key: 'Sesame-4711' });
  const records = async () =>
    (await app.app.store.audit.listOf(key.accountId, { limit: 100 })).filter(
      ({ action }) => action === 'callback:tested',
    );
  const { port } = receiver;
  const went = [
    [200, undefined, HOST, port, 'saved', 'saved'],
    [500, { access_key: 'k' }, HOST, port, 'saved', 'temporary'],
    [200, { url: url('/t').toUpperCase(), access_key: 'k' }, HOST, port, 'temporary', 'temporary'],
    [200, { url: 'https://missing.example.test/?secret' }, 'missing.example.test', 443, 'temporary', 'saved'],
    [200, { url: 'https://private.example.test:8443/' }, 'private.example.test', 8443, 'temporary', 'saved'],
    [200, { url: 'https://127.0.0.1:1/' }, '127.0.0.1', 1, 'temporary', 'saved'],
  ] as const;
  for (const [status, json, host, at, from, with_] of went) {
    const before = await records();
    app.advance(1_000);
    answering(status, '');
    const answer = await world.test(key, json);
    const [record, ...more] = (await records()).slice(before.length);
    assert.deepEqual(more, []);
    const { id, ...facts } = record!;
    assert.match(id, /^[0-9a-z]{26}$/);
    assert.deepEqual(facts, {
      ...{ at: app.now(), accountId: key.accountId, actor: key.keyId, action: 'callback:tested' },
      ...{ subject: key.accountId, requestId: answer.headers.get('x-request-id') },
      details: { host, port: at, url: from, access_key: with_ },
    });
    assert.doesNotMatch(JSON.stringify(record), /Sesame|secret/, 'neither a key nor a query');
  }
  const before = await records();
  for (const json of [{ url: 'https://10.0.0.1/' }, { url: 'http://x/' }, { url: 5 }, [], { access_key: '' }]) {
    await world.test(key, json);
  }
  assert.deepEqual(await records(), before, 'refused tests are not audited');
});
