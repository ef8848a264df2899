// Egress, the TLS part: which certificates are trusted, and that no environment variable weakens the check.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { type CallOptions, HOST, Outside, verdict } from '../../support/outside.ts';
import { OK, Receiver, type ReceiverOptions } from '../../support/receiver.ts';
import { TestCa } from '../../support/receiver-certificates.ts';

let outside: Outside;
before(async () => {
  outside = await Outside.open();
});
after(() => outside[Symbol.asyncDispose]());

const DAY = 86_400_000;
const ANOTHER_CA = new TestCa('Another Root');
const SOON: CallOptions = { limits: { connectMs: 400 } };
/** What Node needs as a server to speak deprecated TLS. */
const WEAK = 'ALL:eNULL:aNULL@SECLEVEL=0';
const [CONNECTION_CLOSED, TLS_FAILED] = ['failed tls connection_closed', 'failed tls tls_failed'];

interface Case {
  readonly options: (ca: TestCa) => ReceiverOptions;
  readonly callOptions?: CallOptions;
  readonly url?: (port: number) => string;
  readonly expected: string | RegExp;
}

const accepting = (onAccept: (socket: net.Socket) => void) => () => ({ onAccept });
const speaking = (bytes: string) => accepting((socket) => socket.on('data', () => socket.write(bytes, 'latin1')));

const CASES: Readonly<Record<string, Case>> = {
  'a certificate for the host': { options: () => ({}), expected: 'answered 200' },
  'a wildcard certificate': {
    options: (ca) => ({ identity: ca.identity(['*.example.test']) }),
    expected: 'answered 200',
  },
  'an RSA key': { options: (ca) => ({ identity: ca.identity([HOST], { rsaBits: 2_048 }) }), expected: 'answered 200' },
  'TLS 1.2': { options: () => ({ tls: { maxVersion: 'TLSv1.2' } }), expected: 'answered 200' },
  'TLS 1.3 only': { options: () => ({ tls: { minVersion: 'TLSv1.3' } }), expected: 'answered 200' },
  'a host with a final dot': {
    options: () => ({}),
    url: (port) => `https://${HOST}.:${port}/`,
    expected: 'answered 200',
  },
  'a certificate for another host': {
    options: (ca) => ({ identity: ca.identity(['other.example.test']) }),
    expected: 'failed tls certificate_wrong_host',
  },
  'a wildcard one level too high': {
    options: (ca) => ({ identity: ca.identity(['*.test']) }),
    expected: 'failed tls certificate_wrong_host',
  },
  'a certificate for the address the host has': {
    options: (ca) => ({ identity: ca.identity(['127.0.0.1']) }),
    expected: 'failed tls certificate_wrong_host',
  },
  'an address in the URL, a certificate for a name': {
    options: () => ({}),
    url: (port) => `https://127.0.0.1:${port}/`,
    expected: 'failed tls certificate_wrong_host',
  },
  'an expired certificate': {
    options: (ca) => ({ identity: ca.identity([HOST], { from: Date.now() - 9 * DAY, until: Date.now() - DAY }) }),
    expected: 'failed tls certificate_expired',
  },
  'an expired certificate for another host': {
    options: (ca) => ({ identity: ca.identity(['other.test'], { until: Date.now() - 3_600_000 }) }),
    expected: 'failed tls certificate_expired',
  },
  'a certificate of tomorrow': {
    options: (ca) => ({ identity: ca.identity([HOST], { from: Date.now() + DAY }) }),
    expected: 'failed tls certificate_not_yet_valid',
  },
  'a self-signed certificate': {
    options: () => ({ identity: new TestCa(HOST).asServer() }),
    expected: 'failed tls certificate_untrusted',
  },
  'a certificate of an unknown authority': {
    options: () => ({ identity: ANOTHER_CA.identity([HOST]) }),
    expected: 'failed tls certificate_untrusted',
  },
  'an unknown authority that sends its root along': {
    options: () => {
      const { cert, key } = ANOTHER_CA.identity([HOST]);
      return { identity: { cert: cert + ANOTHER_CA.root, key } };
    },
    expected: 'failed tls certificate_untrusted',
  },
  'an unknown authority with the name of a known one': {
    options: () => ({ identity: new TestCa('Throw-away Root').identity([HOST]) }),
    expected: 'failed tls certificate_untrusted',
  },
  'a key of 1024 bits': {
    options: (ca) => ({ identity: ca.identity([HOST], { rsaBits: 1_024 }), tls: { ciphers: WEAK } }),
    expected: /^failed tls (certificate_untrusted|tls_failed)$/,
  },
  'TLS 1.1 only': {
    options: () => ({ tls: { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: WEAK } }),
    expected: TLS_FAILED,
  },
  'ciphers without a certificate': {
    options: () => ({ tls: { maxVersion: 'TLSv1.2', ciphers: 'aNULL@SECLEVEL=0' } }),
    expected: TLS_FAILED,
  },
  'ciphers without encryption': {
    options: () => ({ tls: { maxVersion: 'TLSv1.2', ciphers: 'eNULL@SECLEVEL=0' } }),
    expected: TLS_FAILED,
  },
  'HTTP/2 only': { options: () => ({ tls: { ALPNProtocols: ['h2'] } }), expected: TLS_FAILED },
  'HTTP/1.1 among others': {
    options: () => ({ tls: { ALPNProtocols: ['h2', 'http/1.1'] } }),
    expected: 'answered 200',
  },
  'a certificate wanted of us, TLS 1.2': {
    options: () => ({ tls: { requestCert: true, rejectUnauthorized: true, maxVersion: 'TLSv1.2' } }),
    expected: TLS_FAILED,
  },
  'a certificate wanted of us, TLS 1.3': {
    options: () => ({ tls: { requestCert: true, rejectUnauthorized: true } }),
    // Our side of the handshake is done by then.
    expected: /^failed re(quest|sponse) tls_failed$/,
  },
  'a server of plain HTTP that waits for more': {
    options: () => ({ identity: null }),
    callOptions: SOON,
    expected: 'failed tls tls_timeout',
  },
  'an answer in clear': { options: speaking('HTTP/1.1 400 Bad Request\r\n\r\n'), expected: TLS_FAILED },
  'a greeting in clear': { options: accepting((socket) => socket.write('220 mail ESMTP\r\n')), expected: TLS_FAILED },
  'a fatal alert': { options: speaking('\x15\x03\x03\x00\x02\x02\x28'), expected: TLS_FAILED },
  'an alert that the name is unknown': { options: speaking('\x15\x03\x03\x00\x02\x02\x70'), expected: TLS_FAILED },
  'random bytes': { options: speaking('\xff\x00\x80random'), expected: TLS_FAILED },
  'records without content': { options: speaking('\x16\x03\x03\x00\x00'.repeat(100)), expected: TLS_FAILED },
  'our own words': {
    options: accepting((socket) => socket.pipe(socket)),
    expected: TLS_FAILED,
  },
  'a reset at once': {
    options: accepting((socket) => socket.resetAndDestroy()),
    // The reset may arrive before the certificate was checked, and then the cause cannot be determined.
    expected: /^failed (connect connection_failed|tls connection_closed)$/,
  },
  'the end at once': { options: accepting((socket) => socket.end()), expected: CONNECTION_CLOSED },
  'a reset after our hello': {
    options: accepting((socket) => socket.on('data', () => socket.resetAndDestroy())),
    expected: CONNECTION_CLOSED,
  },
  'the end after our hello': {
    options: accepting((socket) => socket.on('data', () => socket.end())),
    expected: CONNECTION_CLOSED,
  },
  'silence after the connection': {
    options: accepting(() => {}),
    callOptions: SOON,
    expected: 'failed tls tls_timeout',
  },
  'half a record and silence': {
    options: speaking('\x16\x03\x03\x00\x7a\x02'),
    callOptions: SOON,
    expected: 'failed tls tls_timeout',
  },
  'silence until the whole call is over': {
    options: accepting(() => {}),
    callOptions: { totalMs: 400 },
    expected: 'failed tls tls_timeout',
  },
  'a request to renegotiate': {
    options: () => ({
      tls: { maxVersion: 'TLSv1.2' },
      script: (socket) =>
        void (socket as tls.TLSSocket).renegotiate({}, (error) => (error ? socket.destroy() : socket.end(OK))),
    }),
    expected: 'failed response connection_closed',
  },
  'the end between handshake and request': {
    options: () => ({ onSecure: (socket) => socket.end() }),
    expected: /^failed re(quest|sponse) connection_closed$/,
  },
  'a reset between handshake and request': {
    options: () => ({ onSecure: (socket) => (socket as unknown as { _parent: net.Socket })._parent.resetAndDestroy() }),
    expected: /^failed (tls|request|response) connection_closed$/,
  },
};

for (const [
  title,
  { options, callOptions, url = (port: number) => `https://${HOST}:${port}/`, expected },
] of Object.entries(CASES)) {
  test(`receiver: ${title}`, async () => {
    const receiver = await outside.receiver(options(outside.ca));
    const outcome = await outside.call(url(receiver.port), callOptions);
    if (typeof expected === 'string') assert.equal(verdict(outcome), expected);
    else assert.match(verdict(outcome), expected);
    if (outcome.kind === 'failed' && outcome.seen.stage === 'tls') {
      assert.equal(outcome.seen.tls, null);
      assert.deepEqual(receiver.requests, [], 'nothing may be sent to an untrusted receiver');
    }
    assert.equal(receiver.connections.length, 1);
    await receiver.deserted();
  });
}

test('the outcome has TLS version and certificate expiry, and SNI was sent', async () => {
  const until = Math.floor(Date.now() / 1_000) * 1_000 + 5 * DAY;
  const identity = outside.ca.identity([HOST], { until });
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const receiver = await outside.receiver({ identity, tls: { minVersion: version, maxVersion: version } });
    const outcome = await outside.call(`https://${HOST}.:${receiver.port}/`);
    assert.ok(outcome.kind === 'answered');
    assert.deepEqual(outcome.seen.tls, { version, certificateEndsAt: until });
    assert.deepEqual(receiver.serverNames, [HOST]);
  }
});

test('a trusted root presented as server certificate does not match the host', async () => {
  const receiver = await outside.receiver({ identity: outside.ca.asServer() });
  assert.equal(verdict(await outside.call(`https://${HOST}:${receiver.port}/`)), 'failed tls certificate_wrong_host');
});

test('nothing older than TLS 1.2 is offered, whatever Node’s defaults', async (t) => {
  const { DEFAULT_MIN_VERSION } = tls;
  t.after(() => {
    tls.DEFAULT_MIN_VERSION = DEFAULT_MIN_VERSION;
  });
  tls.DEFAULT_MIN_VERSION = 'TLSv1';
  const hello = Promise.withResolvers<Buffer>();
  const receiver = await outside.receiver({ onAccept: (socket) => socket.once('data', hello.resolve) });
  // A limit that no other call uses, so that roots and versions are set up again.
  void outside.call(`https://${HOST}:${receiver.port}/`, { limits: { connectMs: 401 } });
  // The supported_versions extension with 1.3 and 1.2.
  assert.ok((await hello.promise).includes(Buffer.from('002b00050403040303', 'hex')));
});

/** Calls each URL once in a separate process and prints the verdicts. */
const CHILD = `
import { callOut } from ${JSON.stringify(fileURLToPath(new URL('../../../src/adapters/egress/call-out.ts', import.meta.url)))};
const { dns, root, ports } = JSON.parse(process.env.TEST_INPUT);
const call = callOut({ dnsServers: [dns], extraRoots: [root], userAgent: 'child' });
const allow = [{ address: Uint8Array.of(127, 0, 0, 0), prefix: 8, port: null }];
const verdicts = [];
for (const port of ports) {
  const url = { scheme: 'https', host: '${HOST}', literal: null, port, target: '/' };
  const outcome = await call({ url, method: 'POST', headers: {}, body: '', policy: { allow, deny: [], totalMs: 8000 } });
  verdicts.push(outcome.status ?? outcome.reason ?? outcome.kind);
}
console.log(JSON.stringify(verdicts));
`;

test('no environment variable adds trust, sets a proxy or weakens TLS', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'reseal-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const rootFile = join(folder, 'another.pem');
  writeFileSync(rootFile, ANOTHER_CA.root);
  await using proxy = await Receiver.start({ onAccept: (socket) => socket.destroy() });
  const ports = await Promise.all(
    [
      {},
      { identity: ANOTHER_CA.identity([HOST]) },
      { identity: outside.ca.identity(['other.example.test']) },
      { tls: { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: WEAK } } as const,
      { tls: { maxVersion: 'TLSv1.2', ciphers: 'aNULL@SECLEVEL=0' } } as const,
      { script: (socket: net.Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n') },
    ].map(async (options) => (await outside.receiver(options)).port),
  );
  const url = `http://127.0.0.1:${proxy.port}`;
  const input = JSON.stringify({ dns: `127.0.0.1:${outside.dns.port}`, root: outside.ca.root, ports });
  const flags = ['--tls-min-v1.0', '--tls-cipher-list=ALL:aNULL:eNULL@SECLEVEL=0', '--insecure-http-parser'];
  const environments: readonly Record<string, string>[] = [
    {},
    { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_EXTRA_CA_CERTS: rootFile, SSL_CERT_FILE: rootFile, SSL_CERT_DIR: folder },
    { NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: url, HTTP_PROXY: url, https_proxy: url, http_proxy: url, ALL_PROXY: url },
    { NODE_OPTIONS: `${flags.join(' ')} --use-openssl-ca`, SSL_CERT_FILE: rootFile },
    { NODE_OPTIONS: '--use-env-proxy --use-system-ca', HTTPS_PROXY: url, LOCALDOMAIN: 'x', HOSTALIASES: rootFile },
  ];
  for (const environment of environments) {
    const env = { PATH: process.env.PATH ?? '', ...environment, TEST_INPUT: input };
    const child = spawn(process.execPath, ['--input-type=module', '--eval', CHILD], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk) => (out += chunk));
    child.stderr.on('data', (chunk) => (err += chunk));
    await once(child, 'close');
    const expected = [
      200,
      'certificate_untrusted',
      'certificate_wrong_host',
      'tls_failed',
      'tls_failed',
      'response_invalid',
    ];
    assert.equal(out, `${JSON.stringify(expected)}\n`, `${JSON.stringify(environment)} ${err}`);
  }
  assert.deepEqual(proxy.connections, []);
});
