// Bounds on DNS lookups: aborted ones are not sent, and concurrency is limited. The name server here holds its answers
// back until released, so that queries can be counted without waiting.
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { once } from 'node:events';
import { test } from 'node:test';
import { dnsLookups } from '../../../src/adapters/dns/lookups.ts';
import { createMetrics } from '../../../src/adapters/metrics/metrics.ts';
import { readConfig } from '../../../src/config/config.ts';
import { OFFERED_DCV_METHODS } from '../../../src/domain/catalog/products.ts';
import type { DomainValidation } from '../../../src/domain/certificate/order.ts';
import { type CheckResult, PASSED } from '../../../src/domain/validation/check-result.ts';
import { readQuery, writeAnswer } from '../../../src/sandbox/dns-message.ts';
import { checkDeadline, checkNames } from '../../../src/usecases/validation/check-names.ts';
import { openValidation } from '../../../src/wiring/validation.ts';
import { NOON } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';

const MAX_UDP_BYTES = 512;
const ROOMY_BYTES = 1024 * 1024;

/** Answers NXDOMAIN to everything, once released. */
async function startSlowNameServer() {
  const socket = dgram.createSocket({ type: 'udp4', recvBufferSize: ROOMY_BYTES });
  /** Names, deduplicated: a resolver without an answer retries. */
  const asked = new Set<string>();
  const answers: (() => void)[] = [];
  let isOpen = false;
  socket.on('message', (message, { port, address }) => {
    const question = readQuery(message);
    if (!question) return void socket.emit('mark');
    asked.add(question.name);
    const answer = () => socket.send(writeAnswer(question, 'nxdomain', [], MAX_UDP_BYTES), port, address);
    if (isOpen) answer();
    else answers.push(answer);
    socket.emit('asked');
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  return {
    asked,
    server: `127.0.0.1:${port}`,
    async hasHeard(count: number): Promise<void> {
      while (asked.size < count) await once(socket, 'asked');
    },
    /** Resolves once all datagrams sent before are counted: they stay in order on loopback. */
    async hasHeardAll(): Promise<void> {
      const heard = once(socket, 'mark');
      socket.send('no question', port, '127.0.0.1');
      await heard;
    },
    answer(count: number): void {
      for (const one of answers.splice(0, count)) one();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      isOpen = true;
      for (const one of answers) one();
      // The queries are sent, and then the check is aborted.
      await this.hasHeardAll();
      socket.unref();
    },
  };
}

const never = new Promise<CheckResult>(() => {});

test('a check past the limit is not started, and a started one is aborted', async () => {
  let begun = 0;
  const check = async () => {
    begun += 1;
    return PASSED;
  };
  using late = checkDeadline(60_000, AbortSignal.abort());
  const results = [await late.run(check), await late.run(check, 'dns-persist'), await late.run(check, 'file')];
  assert.deepEqual(
    results.map((result) => !result.isOk && result.problem),
    ['dns_failure', 'dns_failure', 'http_failure'],
  );
  assert.equal(begun, 0);
  using short = checkDeadline(20);
  assert.equal((await short.run(() => never)).isOk, false);
  assert.equal((await short.run(check)).isOk, false);
  assert.equal(begun, 0, 'the first one has used up the shared time');
  using long = checkDeadline(60_000);
  assert.deepEqual(await long.run(check), PASSED);
});

test('what still runs when a request has failed is aborted', async () => {
  const signals: AbortSignal[] = [];
  {
    using deadline = checkDeadline(60_000);
    const failing = deadline.run(() => Promise.reject(new Error('the store is gone')));
    void deadline.run((signal) => {
      signals.push(signal);
      return never;
    });
    await assert.rejects(failing, /the store is gone/);
    assert.equal(signals[0]?.aborted, false);
  }
  assert.equal(signals[0]?.aborted, true);
});

const DCV: Omit<DomainValidation, 'dcvMethod'> = { dcvScope: 'fqdn', persistUntil: null, persistPolicy: 'fqdn' };
const MANY = 100;

test('a check past its deadline looks up none of the remaining names', async () => {
  for (const kind of [...OFFERED_DCV_METHODS, 'caa'] as const) {
    await using slow = await startSlowNameServer();
    const { config } = readConfig({ RESEAL_DNS_SERVERS: slow.server });
    const tools = openValidation(config, {
      ...{ now: () => NOON, secret: new Uint8Array(32), log: () => {}, metrics: createMetrics() },
    });
    const names = Array.from({ length: MANY }, (_, index) => `name${index}.com`);
    const { control, caa } = await checkNames(tools, {
      accountId: 'account',
      product: { dcvMethods: OFFERED_DCV_METHODS, trust: 'public', validationNetworks: [] },
      names,
      provenBy: new Map(kind === 'caa' ? names.map((name) => [name, ['dns']]) : []),
      dcv: { ...DCV, dcvMethod: kind === 'caa' ? 'dns' : kind },
      limitMs: 100,
    });
    await slow.hasHeardAll();
    const about = names.filter((name) => [...slow.asked].some((one) => one === name || one.endsWith(`.${name}`)));
    assert.equal(about.length, 8, `${kind}: as many as the concurrency limit`);
    assert.deepEqual(about, names.slice(0, about.length), kind);
    // Every name still has a result, and none is proven or permitted.
    const problems = [...(kind === 'caa' ? caa : control).values()].map((result) => !result.isOk && result.problem);
    assert.deepEqual(problems, Array(MANY).fill(kind === 'file' ? 'http_failure' : 'dns_failure'), kind);
  }
});

const BOUND = 256;
const asking = (accountId = 'account', signal = new AbortController().signal) => ({ accountId, signal });

test('lookups are limited process-wide, and the others are queued', async () => {
  await using slow = await startSlowNameServer();
  // The bound is shared by all checks and accounts.
  const [one, other] = [dnsLookups([slow.server]), dnsLookups([slow.server])];
  const more = 60;
  const questions = Array.from({ length: BOUND + more }, (_, index) =>
    index % 2 === 0
      ? one.txt(`question${index}.com`, asking(`account ${index}`))
      : other.caa([`question${index}.com`], asking(`account ${index}`)),
  );
  await slow.hasHeard(BOUND);
  await slow.hasHeardAll();
  assert.equal(slow.asked.size, BOUND);
  // Each answered lookup admits the next.
  slow.answer(10);
  await slow.hasHeard(BOUND + 10);
  await slow.hasHeardAll();
  assert.equal(slow.asked.size, BOUND + 10);
  slow.answer(BOUND);
  await slow.hasHeard(BOUND + more);
  slow.answer(BOUND);
  for (const answer of (await Promise.all(questions)).flat()) assert.deepEqual(answer, { kind: 'absent' });
  // Every slot was released.
  const again = Array.from({ length: BOUND }, (_, index) => one.txt(`again${index}.com`, asking(`account ${index}`)));
  await slow.hasHeard(BOUND + more + BOUND);
  slow.answer(BOUND);
  for (const answer of await Promise.all(again)) assert.deepEqual(answer, { kind: 'absent' });
});

rule('quota 8', 'An account holds at most half of the DNS lookups', async () => {
  await using slow = await startSlowNameServer();
  const { txt } = dnsLookups([slow.server]);
  const gone = new AbortController();
  const crowd = Array.from({ length: 4 * BOUND }, (_, index) => txt(`crowd${index}.com`, asking('crowd', gone.signal)));
  await slow.hasHeard(BOUND / 2);
  await slow.hasHeardAll();
  assert.equal(slow.asked.size, BOUND / 2);
  // Nothing of the crowd is answered, and others do not wait for it; the next crowd leaves half of the rest.
  const honest = ['a', 'b', 'c'].map((name) => txt(`${name}.honest.com`, asking('honest')));
  await slow.hasHeard(BOUND / 2 + honest.length);
  const second = Array.from({ length: BOUND }, (_, index) => txt(`second${index}.com`, asking('second', gone.signal)));
  const rest = BOUND / 2 - honest.length;
  await slow.hasHeard(BOUND - Math.floor(rest / 2));
  await slow.hasHeardAll();
  assert.equal(slow.asked.size, BOUND - Math.floor(rest / 2));
  // What was aborted in the queue is not sent.
  gone.abort();
  for (const answer of await Promise.all([...crowd, ...second])) assert.equal(answer.kind, 'failed');
  await slow.hasHeardAll();
  assert.equal(slow.asked.size, BOUND - Math.floor(rest / 2));
  slow.answer(Number.POSITIVE_INFINITY);
  for (const answer of await Promise.all(honest)) assert.deepEqual(answer, { kind: 'absent' });
});
