// The worker pool: real jobs in real threads, and a script of the test where a thread must misbehave.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { sm2 as oracle } from 'sm-crypto-v2';
import { DerReader } from '../../../src/adapters/der/reader.ts';
import { openSm2PrivateKey, openSm2PublicKey, sm2Scalar } from '../../../src/adapters/sm2/sm2.ts';
import type { Argon2Input } from '../../../src/adapters/workers/jobs.ts';
import { type Packet, transferable, wipe } from '../../../src/adapters/workers/packet.ts';
import { type Pool, type PoolOptions, workerPool } from '../../../src/adapters/workers/pool.ts';
import { Refusal } from '../../../src/domain/errors.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

// RFC 9106, 5.3.
const argon2Example = (): Argon2Input => ({
  message: Buffer.alloc(32, 1),
  nonce: Buffer.alloc(16, 2),
  secret: Buffer.alloc(8, 3),
  associatedData: Buffer.alloc(12, 4),
  passes: 3,
  memory: 32,
  parallelism: 4,
  tagLength: 32,
});
const ARGON2_ANSWER = '0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659';

/** Jobs of the test script, named after what they do. */
type Misbehaviour = {
  echo(input: { text: string }): { text: string };
  fail(): Packet;
  exit(): Packet;
  crash(): Packet;
  hang(): Packet;
};
const SCRIPT = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads';
    parentPort.on('message', ({ job, input }) => {
      if (job === 'echo') parentPort.postMessage({ output: input });
      if (job === 'fail') parentPort.postMessage({ error: new RangeError('not this') });
      if (job === 'exit') process.exit(7);
      if (job === 'crash') throw new Error('loose');
      if (job === 'hang') for (;;);
    });
  `)}`,
);
const misbehaving = (options: PoolOptions = {}): Pool<Misbehaviour> =>
  workerPool<Misbehaviour>({ threads: 1, script: SCRIPT, ...options });

const isBusy = (error: unknown): boolean => {
  assert.ok(error instanceof Refusal, String(error));
  assert.equal(error.code, 'service_busy');
  assert.equal(error.facts.retryAfterSeconds, 1);
  return true;
};

test('each job returns the right result', async () => {
  await using pool = workerPool({ threads: 1 });
  assert.equal(hex((await pool.run('argon2', argon2Example())).key), ARGON2_ANSWER);

  const [key, recipient] = await Promise.all([pool.run('sm2Key'), pool.run('sm2Key')]);
  const { point } = openSm2PublicKey(key.spki);
  assert.deepEqual(openSm2PrivateKey(key.pkcs8).publicKey.point, point);

  const { envelope } = await pool.run('sm2Envelope', { pkcs8: key.pkcs8, recipient: recipient.spki });
  const fields = new DerReader(envelope).sequence();
  fields.any();
  const cipher = hex(fields.any());
  assert.equal(hex(fields.bitString()), hex(point));
  assert.equal(
    oracle.doDecrypt(cipher, hex(sm2Scalar(recipient.pkcs8)), 1, { asn1: true, output: 'array' }).length,
    16,
  );

  const rsa = await pool.run('rsaKey', { bits: 2048 });
  const handle = createPrivateKey({ key: Buffer.from(rsa.pkcs8), format: 'der', type: 'pkcs8' });
  assert.equal(handle.asymmetricKeyDetails?.modulusLength, 2048);
  assert.equal(hex(createPublicKey(handle).export({ format: 'der', type: 'spki' })), hex(rsa.spki));
});

test('jobs are checked by their types', () => {
  const never = (pool: Pool) => [
    pool.run('sm2Key'),
    // @ts-expect-error there is no such job
    pool.run('sm3Key'),
    // @ts-expect-error the input is missing
    pool.run('argon2'),
    // @ts-expect-error a password of another type
    pool.run('argon2', { ...argon2Example(), message: 'text' }),
    // @ts-expect-error an input too many
    pool.run('sm2Key', {}),
    // @ts-expect-error another answer
    pool.run('rsaKey', { bits: 2048 }).then(({ key }) => key),
  ];
  assert.equal(typeof never, 'function');
});

test('the caller keeps its input, even if it is a view of a larger buffer', async () => {
  await using pool = workerPool({ threads: 1 });
  const input = argon2Example();
  const slab = Buffer.alloc(100, 9);
  slab.fill(1, 10, 42);
  const { key } = await pool.run('argon2', { ...input, message: slab.subarray(10, 42) });
  assert.equal(hex(key), ARGON2_ANSWER);
  assert.equal(key.buffer.byteLength, 32);
  assert.equal(hex(slab), '09'.repeat(10) + '01'.repeat(32) + '09'.repeat(58));
  assert.deepEqual(input, argon2Example());
});

test('a transfer moves one copy, and a wiped packet is all zeros', () => {
  const packet = { secret: Uint8Array.of(1, 2, 3), name: 'x', count: 4 };
  const { packet: copy, transfer } = transferable(packet);
  assert.deepEqual(copy, packet);
  assert.equal((copy.secret as Uint8Array).buffer, transfer[0]);
  assert.equal(transfer.length, 1);
  wipe(copy);
  assert.deepEqual(copy, { ...packet, secret: new Uint8Array(3) });
  assert.deepEqual(packet.secret, Uint8Array.of(1, 2, 3));
});

test('a worker wipes the input it was given, whether the job succeeds or fails', async () => {
  const worker = new Worker(new URL('../../../src/adapters/workers/worker.ts', import.meta.url), { execArgv: [] });
  // Shared memory is not copied, so the test can see it wiped.
  const shared = (length: number) => new Uint8Array(new SharedArrayBuffer(length)).fill(1);
  for (const nonceBytes of [16, 1]) {
    const input = { ...argon2Example(), message: shared(32), secret: shared(8), nonce: shared(nonceBytes) };
    worker.postMessage({ job: 'argon2', input });
    const [answer] = await once(worker, 'message');
    assert.equal('error' in answer, nonceBytes === 1);
    // After one more message the worker has certainly left the job.
    worker.postMessage({ job: 'argon2', input: argon2Example() });
    await once(worker, 'message');
    for (const part of [input.message, input.secret, input.nonce]) assert.ok(part.every((byte) => byte === 0));
  }
  await worker.terminate();
});

test('fifty queued jobs leave the event loop free: the processor time they take is not that of its thread', async () => {
  await using pool = workerPool({ threads: 1 });
  const work = { ...argon2Example(), memory: 4096 };
  const [here, everywhere] = [process.threadCpuUsage(), process.cpuUsage()];
  const keys = await Promise.all(Array.from({ length: 50 }, () => pool.run('argon2', work)));
  const [own, all] = [process.threadCpuUsage(here).user, process.cpuUsage(everywhere).user];
  assert.equal(keys.length, 50);
  assert.ok(own < all / 2, `${own} of ${all} µs`);
});

test('threads run in parallel, up to the limit', async () => {
  await using pool = misbehaving({ threads: 2 });
  const hanging = [pool.run('hang'), pool.run('hang')].map((job) => assert.rejects(job, isBusy));
  const third = assert.rejects(pool.run('echo', { text: 'behind them' }), isBusy);
  await using free = misbehaving({ threads: 2 });
  const stuck = assert.rejects(free.run('hang'), isBusy);
  assert.deepEqual(await free.run('echo', { text: 'beside it' }), { text: 'beside it' });
  await Promise.all([pool.close(), free.close(), ...hanging, third, stuck]);
});

test('a full queue refuses at once, and queued jobs still run', async () => {
  await using pool = misbehaving({ maxQueued: 2 });
  const jobs = ['one', 'two', 'three', 'four', 'five'].map((text) => pool.run('echo', { text }));
  const settled = await Promise.allSettled(jobs);
  assert.deepEqual(
    settled.map((one) => (one.status === 'fulfilled' ? one.value.text : isBusy(one.reason))),
    ['one', 'two', 'three', true, true],
  );
  assert.deepEqual(await pool.run('echo', { text: 'six' }), { text: 'six' });
  await using without = misbehaving({ maxQueued: 0 });
  assert.deepEqual(await without.run('echo', { text: 'no queue' }), { text: 'no queue' });
});

test('a failing job rejects with its error, and its thread survives', async () => {
  await using pool = misbehaving();
  await assert.rejects(pool.run('fail'), { name: 'RangeError', message: 'not this' });
  assert.deepEqual(await pool.run('echo', { text: 'on' }), { text: 'on' });
  await using real = workerPool({ threads: 1 });
  await assert.rejects(real.run('argon2', { ...argon2Example(), nonce: new Uint8Array(1) }), { name: 'RangeError' });
  await assert.rejects(real.run('sm2Envelope', { pkcs8: new Uint8Array(), recipient: new Uint8Array() }), /truncated/);
  assert.equal(hex((await real.run('argon2', argon2Example())).key), ARGON2_ANSWER);
});

test('a crashed thread fails its own job and no other', async () => {
  await using pool = misbehaving();
  for (const [job, words] of [
    ['exit', /ended with code 7 while at exit/],
    ['crash', /ended with code 1 while at crash/],
  ] as const) {
    const before = pool.run('echo', { text: 'before' });
    const dying = assert.rejects(pool.run(job), words);
    const behind = pool.run('echo', { text: 'behind' });
    assert.deepEqual(await Promise.all([before, behind]), [{ text: 'before' }, { text: 'behind' }]);
    await dying;
  }
  await assert.rejects(pool.run('crash'), ({ cause }: Error) => (cause as Error).message === 'loose');
});

test('a thread that cannot start fails its own job', async () => {
  await using pool = misbehaving({ script: new URL('data:text/javascript,throw new Error("no start")') });
  const jobs = await Promise.allSettled([1, 2, 3].map(() => pool.run('echo', { text: '' })));
  for (const job of jobs) {
    assert.equal(job.status, 'rejected');
    assert.equal(job.reason.cause.message, 'no start');
  }
});

test('a job over its time limit is rejected, its thread replaced, and the queue continues', async () => {
  await using pool = misbehaving({ timeLimitMs: 2_000 });
  const hanging = assert.rejects(pool.run('hang'), isBusy);
  assert.deepEqual(await pool.run('echo', { text: 'later' }), { text: 'later' });
  await hanging;
});

test('close rejects running, queued and new jobs, and is idempotent', async () => {
  const pool = misbehaving();
  await pool.run('echo', { text: 'started' });
  const [running, waiting] = [pool.run('hang'), pool.run('echo', { text: 'never' })];
  const refused = Promise.all([assert.rejects(running, isBusy), assert.rejects(waiting, isBusy)]);
  await Promise.all([pool.close(), pool.close()]);
  await refused;
  await assert.rejects(pool.run('echo', { text: 'late' }), isBusy);
  await pool.close();
  await misbehaving().close();
});

test('an idle pool does not keep the process alive, whatever its flags and compile cache', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reseal-work-'));
  // As bin/reseal.mjs does it; `--eval` is a flag that a worker must not inherit.
  const program = `
    import module from 'node:module';
    module.enableCompileCache(${JSON.stringify(folder)});
    const { workerPool } = await import(${JSON.stringify(new URL('../../../src/adapters/workers/pool.ts', import.meta.url).href)});
    const { spki } = await workerPool().run('sm2Key');
    process.stdout.write(String(spki.length));
  `;
  try {
    const flags = ['--input-type=module', '--no-warnings', '--eval', program];
    // With a compile cache in the environment, the one of the program would not be used.
    const env = { ...process.env, NODE_COMPILE_CACHE: undefined };
    const { status, stdout, stderr } = spawnSync(process.execPath, flags, { env, encoding: 'utf8', timeout: 20_000 });
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '91', stderr: '' });
    assert.ok(readdirSync(folder).length > 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
