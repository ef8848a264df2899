import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { unwrapKey, type WrapContext, WrappingBroken, wrapKey } from '../../../src/adapters/keys/wrapped-key.ts';
import { newSm2Key } from '../../../src/adapters/sm2/sm2.ts';
import { type Pool, workerPool } from '../../../src/adapters/workers/pool.ts';
import { Refusal } from '../../../src/domain/errors.ts';

const pool = workerPool({ threads: 1 });
after(() => pool.close());

const SECRET = randomBytes(32);
const PLACE = 'sign_keys/17';
const PIN = '271828';
const PKCS8 = newSm2Key().pkcs8;
const CONTEXT = { serviceSecret: SECRET, binding: PLACE, pool };
const wrapped = await wrapKey(PKCS8, PIN, CONTEXT);

/** A context whose pool records its jobs. */
function watched(): { context: WrapContext; asked: unknown[] } {
  const asked: unknown[] = [];
  const run = ((job: 'argon2', input: Parameters<Pool['run']>[1] & object) => {
    asked.push({ job, ...structuredClone(input) });
    return pool.run(job, input as never);
  }) as Pool['run'];
  return { context: { ...CONTEXT, pool: { run } }, asked };
}

/** The text with other parts and a valid MAC, as only the service could write it. */
function rewritten(parts: Readonly<Record<number, string>>): string {
  const fields = wrapped.split('.').slice(0, -1);
  for (const [index, part] of Object.entries(parts)) fields[Number(index)] = part;
  const text = fields.join('.');
  const mac = createHmac('sha256', SECRET).update(`reseal locked key\0${text}\0${PLACE}`).digest('base64url');
  return `${text}.${mac}`;
}

test('the right PIN opens the key, and a wrong one does not', async () => {
  assert.match(wrapped, /^k1\.m19456t2p1\.[\w-]{22}\.[\w-]{16}\.[\w-]+\.[\w-]{43}$/);
  assert.deepEqual(Buffer.from((await unwrapKey(wrapped, PIN, CONTEXT))!), Buffer.from(PKCS8));
  for (const wrong of ['271829', '27182', '2718281', '', ' 271828', '２７１８２８', '271828\0']) {
    assert.equal(await unwrapKey(wrapped, wrong, CONTEXT), null, wrong);
  }
});

test('the same key under the same PIN is wrapped differently each time', async () => {
  const again = await wrapKey(PKCS8, PIN, CONTEXT);
  const [one, two] = [wrapped.split('.'), again.split('.')];
  for (const part of [2, 3, 4, 5]) assert.notEqual(one[part], two[part]);
  assert.deepEqual(Buffer.from((await unwrapKey(again, PIN, CONTEXT))!), Buffer.from(PKCS8));
});

test('a wrong PIN costs exactly what the right one does', async () => {
  const costs = [];
  for (const pin of [PIN, 'wrong!']) {
    const { context, asked } = watched();
    await unwrapKey(wrapped, pin, context);
    const [{ message, ...rest }] = asked as [{ message: Uint8Array }];
    assert.equal(asked.length, 1);
    assert.equal(Buffer.from(message).toString(), pin);
    costs.push(rest);
  }
  assert.deepEqual(costs[0], costs[1]);
  assert.deepEqual(costs[0], {
    job: 'argon2',
    memory: 19456,
    passes: 2,
    parallelism: 1,
    tagLength: 32,
    nonce: new Uint8Array(Buffer.from(wrapped.split('.')[2]!, 'base64url')),
    secret: new Uint8Array(SECRET),
    associatedData: new Uint8Array(Buffer.from(PLACE)),
  });
});

test('no altered character, other place or other secret opens it or counts as a wrong PIN; nothing is computed', async () => {
  const { context, asked } = watched();
  const isBroken = (text: string, why: string, secret: Uint8Array = SECRET, place = PLACE) =>
    assert.rejects(unwrapKey(text, PIN, { ...context, serviceSecret: secret, binding: place }), WrappingBroken, why);
  for (let index = 0; index < wrapped.length; index += 1) {
    for (const character of ['A', 'B', '.', '=', ' ']) {
      if (wrapped[index] === character) continue;
      await isBroken(`${wrapped.slice(0, index)}${character}${wrapped.slice(index + 1)}`, `${character} at ${index}`);
    }
  }
  for (const cut of [
    '',
    'k1',
    'k1.',
    wrapped.slice(0, -1),
    wrapped.slice(1),
    `${wrapped}A`,
    `${wrapped}\n`,
    `${wrapped}.`,
  ]) {
    await isBroken(cut, cut);
  }
  await isBroken(wrapped, 'another place', SECRET, 'sign_keys/18');
  await isBroken(wrapped, 'another secret', randomBytes(32));
  await isBroken(wrapped.replace(/^k1/, 'k2'), 'another version');
  const [other, own] = [await wrapKey(PKCS8, PIN, { ...context, binding: 'sign_keys/18' }), wrapped].map((text) =>
    text.split('.'),
  );
  asked.length = 0;
  for (let part = 1; part < 6; part += 1) {
    if (other![part] !== own![part])
      await isBroken(own!.with(part, other![part]!).join('.'), `part ${part} of another`);
  }
  assert.deepEqual(asked, []);
});

test('parameters are bounded when they are read back, even those the service itself wrote', async () => {
  const { context, asked } = watched();
  const OUT_OF_BOUNDS = [
    ...['m4194304t2p1', 'm262145t2p1', 'm9999999999t2p1', 'm19456t9p1', 'm19456t2p5', 'm19456t9999999999p1'],
    ...['m19455t2p1', 'm8t2p1', 'm19456t1p1'],
    ...['m0t2p1', 'm019456t2p1', 'm19456t2p0', 'm1e9t2p1', 'm-1t2p1', 'm19456t2', 't2m19456p1', 'm19456.5t2p1', ''],
  ];
  for (const cost of OUT_OF_BOUNDS) {
    await assert.rejects(unwrapKey(rewritten({ 1: cost }), PIN, context), WrappingBroken, cost);
  }
  assert.deepEqual(asked, []);
});

test('a text is opened with its own parameters, so that the defaults can be raised', async () => {
  const { context, asked } = watched();
  // It does not open, having been wrapped with other parameters; the assertion is about the job's input.
  assert.equal(await unwrapKey(rewritten({ 1: 'm32768t3p2' }), PIN, context), null);
  const [{ memory, passes, parallelism }] = asked as [Record<string, number>];
  assert.deepEqual({ memory, passes, parallelism }, { memory: 32768, passes: 3, parallelism: 2 });
});

test('PINs are compared in NFC, and nothing else is normalized', async () => {
  const composed = await wrapKey(PKCS8, 'caf\u00e9 Å 密码', CONTEXT);
  for (const [pin, isRight] of [
    ['cafe\u0301 A\u030a 密码', true],
    ['cafe A 密码', false],
    ['CAF\u00c9 Å 密码', false],
    ['caf\u00e9  Å 密码', false],
  ] as const) {
    assert.equal((await unwrapKey(composed, pin, CONTEXT)) !== null, isRight, pin);
  }
});

test('a lone surrogate wraps nothing, and opens nothing that � opens', async () => {
  await assert.rejects(wrapKey(PKCS8, 'pin\ud800', CONTEXT), TypeError);
  const replacement = await wrapKey(PKCS8, 'pin\ufffd', CONTEXT);
  assert.equal(await unwrapKey(replacement, 'pin\ud800', CONTEXT), null);
  assert.notEqual(await unwrapKey(replacement, 'pin\ufffd', CONTEXT), null);
});

test('a service secret that is too short is refused', async () => {
  for (const length of [0, 16, 31]) {
    await assert.rejects(wrapKey(PKCS8, PIN, { ...CONTEXT, serviceSecret: new Uint8Array(length) }), TypeError);
    await assert.rejects(unwrapKey(wrapped, PIN, { ...CONTEXT, serviceSecret: new Uint8Array(length) }), TypeError);
  }
});

test('PIN bytes and derived key are wiped; the input key is left alone', async () => {
  const held: Uint8Array[] = [];
  const run = (async (job: 'argon2', input: { message: Uint8Array }) => {
    const output = await pool.run(job, input as never);
    held.push(input.message, output.key);
    return output;
  }) as Pool['run'];
  const before = Buffer.from(PKCS8);
  const text = await wrapKey(PKCS8, PIN, { ...CONTEXT, pool: { run } });
  assert.ok(await unwrapKey(text, PIN, { ...CONTEXT, pool: { run } }));
  assert.equal(await unwrapKey(text, 'wrong', { ...CONTEXT, pool: { run } }), null);
  assert.equal(held.length, 6);
  for (const bytes of held) assert.ok(bytes.length > 0 && bytes.every((byte) => byte === 0));
  assert.deepEqual(Buffer.from(PKCS8), before);
});

test('a busy pool does not count as a wrong PIN', async () => {
  const closed = workerPool({ threads: 1 });
  await closed.close();
  await assert.rejects(unwrapKey(wrapped, PIN, { ...CONTEXT, pool: closed }), Refusal);
  await assert.rejects(wrapKey(PKCS8, PIN, { ...CONTEXT, pool: closed }), Refusal);
});
