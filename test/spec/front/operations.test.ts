import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ERROR_TABLE } from '../../../src/http/front/error-table.ts';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { selfSigned } from '../../support/self-signed.ts';

const CONSOLE = new URL('../../../src/console/', import.meta.url).pathname;
const app = await startApp({ RESEAL_PUBLIC_URL: '' });
after(() => app[Symbol.asyncDispose]());

rule('ops 1', '`GET /healthz` answers 200 in the success envelope', async () => {
  const { status, body } = await app.call('GET', '/healthz');
  assert.deepEqual([status, body.code], [200, 'success']);
});

rule('ops 2', '`GET /readyz` answers 200 in the success envelope when the store can take a durable write', async () => {
  const before = await app.app.store.settings.get('last_write_probe');
  const { status, body } = await app.call('GET', '/readyz');
  assert.deepEqual([status, body.code], [200, 'success']);
  const written = await app.app.store.settings.get('last_write_probe');
  assert.notEqual(written, before);
  assert.equal(written, String(app.now()));
});

rule('ops 4', '`GET /metrics` answers in the text format of Prometheus', async () => {
  await app.call('GET', '/healthz');
  const { status, headers, text } = await app.call('GET', '/metrics');
  assert.equal(status, 200);
  assert.match(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  for (const line of text.split('\n').filter((one) => one !== '')) {
    assert.match(line, /^(# (HELP|TYPE) [a-zA-Z0-9_:]+ .+|[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? \S+)$/);
  }
  assert.match(text, /^reseal_http_request_seconds_count\{method="GET",route="\/healthz",status="200"\} \d+$/m);
  // A duration was recorded.
  const [, sum] = /^reseal_http_request_seconds_sum\{method="GET",route="\/healthz",status="200"\} (\S+)$/m.exec(text)!;
  assert.ok(Number(sum) > 0);
});

rule('ops 5', 'every caller that is not on the loopback interface or that came through a proxy', async () => {
  assert.equal((await app.call('GET', '/metrics')).status, 200);
  for (const headers of [{ 'x-forwarded-for': '127.0.0.1' }, { forwarded: 'for=127.0.0.1' }]) {
    const { status, body } = await app.call('GET', '/metrics', { headers });
    assert.deepEqual([status, body.code], [403, 'permission_denied']);
  }
  // A remote caller, as reported by a trusted proxy.
  await using proxied = await startApp({ RESEAL_TRUSTED_PROXIES: '127.0.0.1' });
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1', '2001:db8::1', '127.0.0.1']) {
    const { status } = await proxied.call('GET', '/metrics', { headers: { 'x-forwarded-for': address } });
    assert.equal(status, 403, address);
  }
});

rule('ops 13', 'every caller that does not send it as a bearer token', async () => {
  const token = 'metrics-token-0123456789';
  await using guarded = await startApp({ RESEAL_METRICS_TOKEN: token });
  const statusWith = async (headers: Record<string, string>) =>
    (await guarded.call('GET', '/metrics', { headers })).status;
  assert.equal(await statusWith({ authorization: `Bearer ${token}` }), 200);
  assert.equal(await statusWith({ authorization: `Bearer ${token}`, 'x-forwarded-for': '192.0.2.1' }), 200);
  for (const authorization of [
    '',
    token,
    `Bearer ${token}x`,
    `Bearer ${token.slice(1)}`,
    `bearer ${token}`,
    'Bearer',
  ]) {
    assert.equal(await statusWith({ authorization }), 403, authorization);
  }
  assert.equal(await statusWith({}), 403);
});

rule('ops 6', 'an OpenAPI 3.1 document of every operation under `/openapi/v3` that this build has', async () => {
  const { status, body } = await app.call('GET', '/openapi.json');
  assert.equal(status, 200);
  assert.match(body.openapi, /^3\.1\./);
  const operations = Object.entries<object>(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const ours = operations.filter((one) => one.includes(' /openapi/v3/'));
  assert.deepEqual(ours.sort(), [
    'DELETE /openapi/v3/account/callback',
    'DELETE /openapi/v3/certs/{id}/revocation',
    'DELETE /openapi/v3/cloud-keys/{id}',
    'GET /openapi/v3/account',
    'GET /openapi/v3/account/audit',
    'GET /openapi/v3/account/callback',
    'GET /openapi/v3/account/callback/deliveries',
    'GET /openapi/v3/certs',
    'GET /openapi/v3/certs/{id}',
    'GET /openapi/v3/cloud-keys',
    'GET /openapi/v3/orders',
    'GET /openapi/v3/orders/alternate/{alternative_order_id}',
    'GET /openapi/v3/orders/{id}',
    'GET /openapi/v3/orders/{id}/dcv-check',
    'GET /openapi/v3/products',
    'POST /openapi/v3/account/callback/deliveries/resend',
    'POST /openapi/v3/account/callback/deliveries/{id}/resend',
    'POST /openapi/v3/account/callback/rotate-secret',
    'POST /openapi/v3/certs/{id}/revoke',
    'POST /openapi/v3/orders/{id}',
    'POST /openapi/v3/orders/{id}/reissue',
    'PUT /openapi/v3/account',
    'PUT /openapi/v3/account/callback',
    'PUT /openapi/v3/account/callback/test',
    'PUT /openapi/v3/certs/{id}/revocation',
    'PUT /openapi/v3/cloud-keys/{id}/pin',
    'PUT /openapi/v3/orders/{id}/cancel',
    'PUT /openapi/v3/orders/{id}/dcv-completed',
    'PUT /openapi/v3/orders/{id}/dcv-method',
  ]);
  assert.deepEqual(body.security, [{ keyId: [], authKey: [] }]);
  assert.deepEqual(body.components.securitySchemes.authKey, { type: 'apiKey', in: 'header', name: 'X-CC-Auth-Key' });
});

rule(
  'ops 7',
  'every operation beyond the two of the interface specification is marked `x-reseal-extension`',
  async () => {
    const specified = new Set(['post /openapi/v3/orders/{id}/reissue', 'put /openapi/v3/account/callback/test']);
    const { body } = await app.call('GET', '/openapi.json');
    for (const [path, methods] of Object.entries<Record<string, { 'x-reseal-extension'?: boolean }>>(body.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const isOurs = !specified.has(`${method} ${path}`);
        assert.equal(operation['x-reseal-extension'] ?? false, isOurs, `${method} ${path}`);
      }
    }
  },
);

rule('ops 8', 'names `RESEAL_PUBLIC_URL` as the address of its server', async () => {
  assert.deepEqual((await app.call('GET', '/openapi.json')).body.servers, [{ url: app.url }]);
  await using named = await startApp({ RESEAL_PUBLIC_URL: 'https://certs.example/pki/' });
  const listening = named.lines.find(({ event }) => event === 'listening');
  const address = listening?.event === 'listening' ? listening.text.split(' ')[0] : '';
  const document = (await (await fetch(`${address}/openapi.json`)).json()) as { servers: unknown };
  assert.deepEqual(document.servers, [{ url: 'https://certs.example/pki' }]);
});

rule('ops 9', 'a reference page that makes no request to any other host', async () => {
  const page = await app.call('GET', '/docs');
  assert.equal(page.status, 200);
  // The browser enforces it: only this service is listed.
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  for (const directive of policy.split(';').map((one) => one.trim())) {
    assert.match(directive, /^[a-z-]+ ('none'|'self'( 'sha256-[\w+/=]+')?|data:|'script')$/);
  }
  const modules = ['shell', 'reference'].flatMap((folder) =>
    readdirSync(join(CONSOLE, folder)).map((file) => readFileSync(join(CONSOLE, folder, file), 'utf8')),
  );
  assert.ok(modules.length > 15);
  for (const text of [page.text, readFileSync(join(CONSOLE, 'style.css'), 'utf8'), ...modules]) {
    assert.doesNotMatch(text, /(src|href|import|fetch|url)\s*[=(]?\s*["'(]?(https?:)?\/\//);
  }
});

rule('console 97', 'are served under the policy of the console, and work under any path prefix', async () => {
  await using prefixed = await startApp({ RESEAL_PUBLIC_URL: 'http://127.0.0.1:1/pki/' });
  const address = `http://127.0.0.1:${(prefixed.server.address() as AddressInfo).port}`;
  const directives = (text: string | null) => text?.replace(/ 'sha256-[^']+'/, '');
  const policy = directives((await fetch(`${address}/pki/console/`)).headers.get('content-security-policy'));
  for (const path of ['/docs', '/docs/', '/pki/docs', '/pki/docs/']) {
    const page = await fetch(address + path);
    const text = await page.text();
    assert.equal(page.status, 200, path);
    assert.equal(directives(page.headers.get('content-security-policy')), policy);
    // As a browser resolves them.
    const links = [...text.matchAll(/(?:src|href)="([^":]+)"|:"(\.[^"]+)"/g)].map(([, a, b]) => a ?? b ?? '');
    assert.ok(links.length >= 6, text);
    for (const link of links) assert.equal((await fetch(new URL(link, address + path))).status, 200, `${path} ${link}`);
    const map = /<script type="importmap">(.*?)<\/script>/.exec(text)?.[1] ?? '';
    const digest = createHash('sha256').update(map).digest('base64');
    assert.ok(page.headers.get('content-security-policy')?.includes(`'sha256-${digest}'`));
  }
});

rule(
  'console 101',
  'is a page with links to the console, the reference, the OpenAPI document and the health check',
  async () => {
    const {
      status,
      text,
      headers: answered,
    } = await app.call('GET', '/', { headers: { accept: 'text/html,application/xhtml+xml' } });
    assert.equal(status, 200);
    assert.match(answered.get('content-type') ?? '', /^text\/html/);
    for (const link of new Set([...text.matchAll(/<a href="([^"]+)"/g)].map(([, href = '']) => href))) {
      assert.equal((await app.call('GET', `/${link}`)).status, 200, link);
    }
    for (const link of ['console/', 'docs', 'openapi.json', 'healthz'])
      assert.ok(text.includes(`href="${link}"`), link);
    for (const headers of [{}, { accept: 'application/json' }, { accept: '' }]) {
      const { status: refused, body } = await app.call('GET', '/', { headers });
      assert.deepEqual([refused, body.code], [404, 'route_not_found']);
    }
  },
);

test('the reference page has words and values for operations that exist', async () => {
  const { paths } = (await app.call('GET', '/openapi.json')).body;
  const items: Record<string, { operationId: string }>[] = Object.values(paths);
  const known = new Set(items.flatMap((item) => Object.values(item).map(({ operationId }) => operationId)));
  const named = (file: string, list: RegExp) => {
    const [, body = ''] = list.exec(readFileSync(join(CONSOLE, 'reference', file), 'utf8')) ?? [];
    return [...body.matchAll(/^ {2}'?([a-z]+[A-Z]\w+)'?[:,]/gm)].map(([, id = '']) => id);
  };
  const ids = [
    ...named('ask-first.ts', /const CONSEQUENCES = \[(.*?)\] as const/s),
    ...named('own-values.ts', /const FITTING.*? = \{\n(.*?)\n\};/s),
  ];
  assert.ok(ids.length >= 15, String(ids));
  for (const id of ids) assert.ok(known.has(id), id);
});

rule('console 95', 'every error code with its status, meaning and remedy, in English and Chinese', async () => {
  const { body } = await app.call('GET', '/openapi.json');
  assert.deepEqual(body['x-error-codes'], ERROR_TABLE);
  for (const [code, { en, zh }] of Object.entries(ERROR_TABLE)) {
    // What is wrong, then what to do.
    assert.match(en, /[.:;] \S.*\.$/, code);
    assert.match(zh, /[，。：；、（]\P{P}.*。$/u, code);
  }
});

rule(
  'ops 20',
  'Every request leaves one JSON log line with its request id, except a successful one to `/healthz`, `/readyz` or',
  async () => {
    await using logged = await startApp();
    const key = await logged.newKey();
    const secret = 'S3cret-Value-0123456789abcdef';
    const json = { name: 'ok', access_key: secret, sign_key_pin: secret, certificate: { csr: secret } };
    const calls = [
      await logged.call('GET', '/openapi/v3/account', { key }),
      await logged.call('GET', '/openapi/v3/account', { key: { ...key, authKey: secret } }),
      await logged.call('GET', '/openapi/v3/account', { key: { ...key, keyId: secret } }),
      await logged.call('PUT', '/openapi/v3/account', { key, json }),
      await logged.call('PUT', '/openapi/v3/account', { key, json: { locale: secret } }),
      await logged.call('PUT', '/openapi/v3/account', {
        key,
        raw: `{"a":"${secret}`,
        headers: { 'content-type': 'application/json' },
      }),
      await logged.call('GET', `/openapi/v3/${secret}?token=${secret}`, { key }),
      await logged.call('GET', `/${secret}%`, {}),
      await logged.call('GET', '/metrics', {
        headers: { authorization: `Bearer ${secret}`, 'user-agent': secret, forwarded: secret },
      }),
    ];
    for (const path of ['/healthz', '/readyz', '/metrics']) assert.equal((await logged.call('GET', path)).status, 200);
    await logged.stop();
    assert.doesNotMatch(logged.output, /"route":"\/(healthz|readyz)"/);
    for (const { headers } of calls) {
      const id = headers.get('x-request-id');
      const lines = logged.output
        .split('\n')
        .filter((line) => line.includes('"event":"request"') && line.includes(`"${id}"`));
      assert.equal(lines.length, 1, `request ${id}`);
      assert.equal(JSON.parse(lines[0]!).request_id, id);
    }
    const needles = [secret, key.authKey].flatMap((text) => [
      text,
      Buffer.from(text).toString('base64').replace(/=+$/, ''),
      Buffer.from(text).toString('hex'),
      encodeURIComponent(text),
    ]);
    for (const needle of needles) assert.equal(logged.output.includes(needle), false);
  },
);

rule('ops 20', 'unless `RESEAL_LOG_PROBES` is `true`', async () => {
  await using logged = await startApp({ RESEAL_LOG_PROBES: 'true' });
  const { headers } = await logged.call('GET', '/healthz');
  await logged.stop();
  const id = headers.get('x-request-id');
  assert.ok(logged.lines.some((line) => line.event === 'request' && line.request_id === id));
});

test('an unexpected error is logged with its stack and without quoted values', async () => {
  await using broken = await startApp();
  const key = await broken.newKey();
  const secret = 'very-secret-pin-4711';
  broken.app.store.credentials.findForAuthentication = async () => {
    throw new SyntaxError(`Unexpected token in "${secret}" near 4711 at ${Buffer.from(secret).toString('base64')}`);
  };
  const { status, body, headers } = await broken.call('GET', '/openapi/v3/account', { key });
  assert.deepEqual([status, body.code], [500, 'service_internal_error']);
  const fault = broken.lines.find(({ event }) => event === 'error');
  assert.ok(fault?.event === 'error' && fault.request_id === headers.get('x-request-id') && fault.stack.length > 0);
  assert.match(fault.message, /^Unexpected token in/);
  assert.doesNotMatch(broken.output, /4711|very-secret|dmVyeS1zZWNyZXQ/);
});

rule('errors service_internal_error', 'the answer tells nothing of the cause', async () => {
  await using broken = await startApp();
  const key = await broken.newKey();
  broken.app.store.credentials.findForAuthentication = async () => {
    throw new Error('the cause');
  };
  const { status, body, text } = await broken.call('GET', '/openapi/v3/account', { key });
  assert.equal(status, 500);
  assert.deepEqual(Object.keys(body).sort(), ['code', 'message', 'request_id']);
  assert.equal(body.code, 'service_internal_error');
  assert.doesNotMatch(text, /cause|\.ts|at /);
});

rule('ops 11', 'With a certificate and a key configured, the service itself speaks HTTPS', async () => {
  const { certificate, certFile, keyFile } = selfSigned('localhost');
  await using secured = await startApp({ RESEAL_TLS_CERT_FILE: certFile, RESEAL_TLS_KEY_FILE: keyFile });
  assert.match(secured.url, /^https:/);
  const get = (options: https.RequestOptions) =>
    new Promise<number | undefined>((resolve, reject) => {
      https.get(`${secured.url}/healthz`, options, (answer) => resolve(answer.resume().statusCode)).on('error', reject);
    });
  assert.equal(await get({ ca: certificate, servername: 'localhost', agent: false }), 200);
  await assert.rejects(get({ agent: false }), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  await assert.rejects(get({ ca: certificate, servername: 'localhost', maxVersion: 'TLSv1.1', agent: false }));
});

rule('ops 12', 'A forwarded client address is believed only when the direct peer is listed', async () => {
  const seen = async (environment: Record<string, string>, forwarded: string) => {
    await using one = await startApp(environment);
    await one.call('GET', '/openapi.json', { headers: { 'x-forwarded-for': forwarded } });
    await one.stop();
    const line = one.lines.find(({ event }) => event === 'request');
    return line?.event === 'request' ? line.remote : undefined;
  };
  assert.equal(await seen({}, '192.0.2.7'), '127.0.0.1');
  assert.equal(await seen({ RESEAL_TRUSTED_PROXIES: '192.0.2.0/24' }, '192.0.2.7'), '127.0.0.1');
  assert.equal(await seen({ RESEAL_TRUSTED_PROXIES: '127.0.0.0/8' }, '192.0.2.7'), '192.0.2.7');
  // Only the last address that is not a trusted proxy's counts; the client controls the ones before it.
  assert.equal(await seen({ RESEAL_TRUSTED_PROXIES: '127.0.0.1' }, '198.51.100.1, 192.0.2.7'), '192.0.2.7');
});
