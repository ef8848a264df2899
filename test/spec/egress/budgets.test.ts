// Time limits of a test, at their real values: receivers and name servers that never answer, send a byte at a time, or
// answer just before a limit. All run concurrently, so that the file takes as long as its slowest case.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { after } from 'node:test';
import { resultOf, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { isLocalAddress } from '../../support/outside.ts';
import { respondAndKeepOpen, type Script } from '../../support/receiver.ts';

const world = await startCallbackApp({
  RESEAL_CALLBACK_TEST_RATE: '1000/s',
  RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '100',
  RESEAL_CALLBACK_TESTS_PER_HOST: '100',
});
after(() => world[Symbol.asyncDispose]());
const { app, outside } = world;
const { dns } = outside;
const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill('SIGKILL');
});

/** Tolerance for a busy machine; the limits are further apart than that. */
const LATE_MS = 1_900;
const identity = outside.ca.identity(['*.example.test']);
let names = 0;
function published(...answers: Parameters<typeof dns.set<'A'>>[2][]): string {
  names += 1;
  dns.set(`name-${names}.example.test`, 'A', ...answers);
  return `name-${names}.example.test`;
}

/** Never idle long enough to time out, and never done. */
const dripping =
  (head: string, drop: string): Script =>
  (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(drop), 100);
    socket.on('close', () => clearInterval(timer));
  };
const answering = async (script: Script) => (await outside.receiver({ identity, script })).port;

/** Delays the connection before the receiver, so that the handshake starts late. */
async function delayed(port: number, ms: number): Promise<number> {
  const server = net.createServer({ pauseOnConnect: true }, (client) => {
    client.on('error', () => {});
    const timer = setTimeout(() => {
      const behind = net.connect(port, '127.0.0.1').on('error', () => {});
      client.on('close', () => behind.destroy());
      client.pipe(behind).pipe(client);
    }, ms);
    client.on('close', () => clearTimeout(timer));
  });
  after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as net.AddressInfo).port;
}

/** Its accept queue is full, so the kernel drops further SYNs, as a firewall does. */
async function blackHole(host: string): Promise<number> {
  const program = `
    const server = require('node:net').createServer();
    server.listen({ host: ${JSON.stringify(host)}, port: 0, backlog: 1 }, () => {
      require('node:fs').writeSync(1, String(server.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const child = spawn(process.execPath, ['--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const [line] = (await once(child.stdout!, 'data')) as [Buffer];
  const fillers = Array.from({ length: 8 }, () => net.connect(Number(line), host).on('error', () => {}));
  after(() => {
    for (const one of fillers) one.destroy();
  });
  await Promise.all(fillers.slice(0, 2).map((one) => once(one, 'connect')));
  return Number(line);
}

/** The target, the expected result (`success`, or stage and reason), and the maximum time per phase. */
type Case = readonly [host: string, port: number, expected: string, most: Readonly<Record<string, number>>];

async function cases(): Promise<Record<string, Case>> {
  const here = ['127.0.0.1'];
  const silent = await answering(() => {});
  const mute = await outside.receiver({ onAccept: () => {} });
  // The start of a long ServerHello, then one byte at a time.
  const onAccept = (socket: net.Socket) => dripping('\x16\x03\x03\x3f\x7f\x02\0\x3f\x7b\x03\x03', 'x')(socket, '');
  const hesitant = await outside.receiver({ onAccept });
  const headDrips = await answering(dripping('HTTP/1.1 200 OK\r\nX-A: ', 'a'));
  const interim = await answering(respondAndKeepOpen('HTTP/1.1 102 Processing\r\n\r\n'));
  const noBody = await answering(respondAndKeepOpen('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'));
  const bodyDrips = await answering(dripping('HTTP/1.1 200 OK\r\n\r\n', 'a'));
  const half = published(here);
  dns.set(half, 'AAAA', 'silence');
  const [noDns, noTls, noAnswer] = ['resolve dns_timeout', 'tls tls_timeout', 'response response_timeout'];
  return {
    'a name server that never answers': [published('silence'), 443, noDns, { resolve: 3_000 }],
    'a name server that never answers for IPv6': [half, silent, noDns, { resolve: 3_000 }],
    'a server that does not speak TLS': [published(here), mute.port, noTls, { connect_and_tls: 5_000 }],
    'a handshake that drips': [published(here), hesitant.port, noTls, { connect_and_tls: 5_000 }],
    'no answer': [published(here), silent, noAnswer, { whole: 10_000 }],
    'a response head sent a byte at a time': [published(here), headDrips, noAnswer, { whole: 10_000 }],
    'an interim response only': [published(here), interim, noAnswer, { whole: 10_000 }],
    // A lost query costs a second and the handshake starts late, so that less than the total is left.
    'every phase just in time, and then no answer': [
      ...([published('silence', here), await delayed(silent, 3_500), noAnswer] as const),
      { whole: 10_000, resolve: 3_000, connect_and_tls: 5_000 },
    ],
    'a body that never comes': [published(here), noBody, 'success', { response: 1_000 }],
    'a body that drips': [published(here), bodyDrips, 'success', { response: 1_000 }],
  };
}

/** Black-holed addresses, which need more than one loopback address. */
async function holes(): Promise<Record<string, Case>> {
  const port = await blackHole('127.0.0.2');
  await outside.receiver({ host: '127.0.0.3', port, onAccept: () => {} });
  const [alone, both] = [published(['127.0.0.2']), published(['127.0.0.2', '127.0.0.3'])];
  return {
    'an address that swallows every packet': [alone, port, 'connect connect_timeout', { connect_and_tls: 5_000 }],
    'followed by one that does not speak TLS': [both, port, 'tls tls_timeout', { connect_and_tls: 5_000 }],
  };
}

rule(
  'egress 4',
  'A test ends within 10 seconds, of which resolution takes at most 3, connection and TLS 5, and the body 1.',
  async (t) => {
    const isLinux = await isLocalAddress('127.0.0.3');
    if (!isLinux) t.diagnostic('this machine has 127.0.0.1 only: no packets vanish');
    const all = { ...(await cases()), ...(isLinux ? await holes() : {}) };
    const key = await app.newKey();
    const seen: string[] = [];
    await Promise.all(
      Object.entries(all).map(async ([title, [host, port, expected, most]]) => {
        const begun = performance.now();
        const answer = await world.test(key, { url: `https://${host}:${port}/`, access_key: 'k' });
        const whole = Math.round(performance.now() - begun);
        const what = `${title}, ${whole} ms: ${answer.text}`;
        const { stage, reason, phases_ms: phases } = answer.body.data?.callback ?? answer.body.details;
        const outcome = resultOf(answer) === '200 success' ? 'success' : `${stage} ${reason}`;
        assert.equal(outcome, expected, what);
        const took: Readonly<Record<string, number>> = {
          ...phases,
          whole,
          connect_and_tls: (phases.connect ?? 0) + (phases.tls ?? 0),
        };
        for (const [phase, ms] of Object.entries({ whole: 10_000, ...most })) {
          assert.ok((took[phase] ?? Number.NaN) <= ms + LATE_MS, `${phase} took ${took[phase]} ms of ${ms}: ${what}`);
        }
        seen.push(`${title}: ${outcome} after ${whole} ms`);
      }),
    );
    for (const line of seen) t.diagnostic(line);
  },
);
