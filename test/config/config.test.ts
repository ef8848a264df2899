import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Environment, readConfig } from '../../src/config/config.ts';
import { VARIABLES } from '../../src/config/variables.ts';
import { Problem } from '../../src/kernel/problem.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');

function problemOf(environment: Environment): string {
  try {
    readConfig(environment);
  } catch (error) {
    assert.ok(error instanceof Problem);
    return error.message;
  }
  return '';
}

test('an empty environment gives the defaults: loopback, embedded database, keys in ./data', () => {
  const { config, warnings } = readConfig({});
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    {
      host: config.host,
      port: config.port,
      database: config.database.kind,
      seal: config.sealKey.kind,
      tls: config.tls,
    },
    { host: '127.0.0.1', port: 8080, database: 'sqlite', seal: 'file', tls: undefined },
  );
  assert.match(config.dataDir, /\/data$/);
  assert.throws(() => Object.assign(config, { port: 1 }), TypeError);
  assert.throws(() => Object.assign(config.database, { kind: 'x' }), TypeError);
});

test('a malformed value is an error that names the variable, the problem and an example', () => {
  const malformed: Record<string, string[]> = {
    RESEAL_DATA_DIR: [' x', 'x '],
    RESEAL_HOST: [' 0.0.0.0'],
    RESEAL_PORT: ['-1', '65536', '8080 ', '0x50', '80.5', '1e3', 'http', '99999999999'],
    RESEAL_PUBLIC_URL: [
      'certs.example.com',
      'ftp://x',
      'https://',
      'https://u:p@x',
      'https://x?q',
      'https://x#f',
      'https:x',
    ],
    RESEAL_DATABASE_URL: ['mysql://x', 'sqlite:x', 'postgres:x', 'postgres://[', 'x'],
    RESEAL_DATABASE_CONNECTIONS: ['0', '501', 'many'],
    RESEAL_SEAL_KEY: ['short', `${KEY}x`, `${KEY},x`, 'A'.repeat(44)],
    RESEAL_TRUSTED_PROXIES: ['x', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.1,', '10.0.0.0/', '::1/129', 'loopback'],
    RESEAL_DNS_SERVERS: ['ns.example', '1.2.3', '1.2.3.4:99999', '[::1', '[1.2.3.4]', '1.2.3.4:', '::1]:53'],
    RESEAL_CALLBACK_SCHEDULE: ['5', 'soon', '5s,', '0s', '-1s', '1d', '169h', '5s;6s', Array(31).fill('1s').join()],
    RESEAL_EXPIRY_NOTICE_DAYS: ['0', '366', '30,30', '30,', '1.5', '30d', 'None', '1,2,3,4,5,6,7,8,9,10,11'],
    RESEAL_CALLBACKS_AT_ONCE: ['1', '10001'],
    RESEAL_CALLBACK_RETENTION_DAYS: ['0', '3651'],
    RESEAL_METRICS_TOKEN: ['short', 'has a blank in it, long', 'ünïcode-ünïcode-ünïcode'],
    RESEAL_MAX_REQUESTS: ['0', '-5', ''.padEnd(10, '9')],
    RESEAL_DRAIN_SECONDS: ['-1', '301', '5s'],
    RESEAL_SHUTDOWN_SECONDS: ['-1', '3601', '5s'],
    RESEAL_LOG_FORMAT: ['xml', 'JSON'],
  };
  for (const [name, values] of Object.entries(malformed)) {
    for (const value of values) {
      const message = problemOf({ [name]: value });
      const { example } = VARIABLES[name as keyof typeof VARIABLES];
      assert.match(message, new RegExp(`${name} \\([^)]+\\) (must|begins|looks)`), `${name}=${value}`);
      assert.ok(message.includes(`Example: ${name}=${example}`), `${name}=${value}`);
    }
  }
});

test('well-formed values are accepted', () => {
  const { config } = readConfig({
    RESEAL_PORT: '0',
    RESEAL_PUBLIC_URL: 'HTTPS://Certs.Example.com/pki//',
    RESEAL_DATABASE_URL: 'postgresql://u:p@db:5432/reseal?sslmode=verify-full',
    RESEAL_SEAL_KEY: `${KEY},${KEY}`,
    RESEAL_TRUSTED_PROXIES: '10.0.0.0/8, ::1, 2001:db8::/32',
    RESEAL_DNS_SERVERS: '192.0.2.53, 192.0.2.54:5353,[2001:db8::53]:53,2001:db8::54',
    RESEAL_TLS_CERT_FILE: 'a.pem',
    RESEAL_TLS_KEY_FILE: 'a.key',
    RESEAL_DRAIN_SECONDS: '0',
    RESEAL_SHUTDOWN_SECONDS: '0',
  });
  assert.equal(config.publicUrl, 'https://certs.example.com/pki');
  assert.deepEqual(config.dnsServers, ['192.0.2.53', '192.0.2.54:5353', '[2001:db8::53]:53', '2001:db8::54']);
  assert.deepEqual(config.trustedProxies, ['10.0.0.0/8', '::1', '2001:db8::/32']);
  assert.equal(config.database.kind, 'postgresql');
});

test('one error lists every invalid variable', () => {
  const message = problemOf({ RESEAL_PORT: 'x', RESEAL_LOG_FORMAT: 'y', RESEAL_TLS_CERT_FILE: 'only one of two' });
  for (const name of ['RESEAL_PORT', 'RESEAL_LOG_FORMAT', 'RESEAL_TLS_KEY_FILE'])
    assert.ok(message.includes(name), name);
});

test('the error does not quote a malformed value: it may be a secret', () => {
  for (const name of Object.keys(VARIABLES)) {
    for (const value of [' s3cr3t', 's3cr3t,s3cr3t', '5s3cr3t']) {
      assert.ok(!problemOf({ [name]: value }).includes('s3cr3t'), `${name}=${value}`);
    }
  }
});

test('an unknown variable is a warning; an empty one is unset', () => {
  const { config, warnings } = readConfig({
    RESEAL_PROT: '1',
    RESEAL_SERVICE_HOST: '10.0.0.1',
    RESEAL_PORT: '',
    OTHER: 'x',
  });
  assert.equal(config.port, 8080);
  assert.deepEqual(
    warnings.map((warning) => warning.split(' ')[0]),
    ['RESEAL_PROT', 'RESEAL_SERVICE_HOST'],
  );
});

test('variables that Kubernetes injects for a Service named reseal are recognised', () => {
  assert.match(problemOf({ RESEAL_PORT: 'tcp://10.96.0.10:8080' }), /Kubernetes.*enableServiceLinks/);
});

test('no value of any variable makes reading throw anything but a Problem', () => {
  const names = fc.constantFrom(...Object.keys(VARIABLES));
  fc.assert(
    fc.property(names, fc.string({ unit: 'binary' }), (name, value) => {
      try {
        readConfig({ [name]: value });
      } catch (error) {
        assert.ok(error instanceof Problem, String(error));
      }
    }),
  );
});

test('a schedule is a list of delays, and the default is that of the contract', () => {
  const scheduleOf = (text?: string) => readConfig({ RESEAL_CALLBACK_SCHEDULE: text }).config.callbacks.schedule;
  assert.deepEqual(scheduleOf('250ms, 5s,2min,168h'), [250, 5_000, 120_000, 168 * 3_600_000]);
  const hours = [2, 5, 10, 14, 20, 24].map((count) => count * 3_600_000);
  assert.deepEqual(scheduleOf(), [5_000, 30_000, 300_000, 1_800_000, ...hours]);
});

test('thresholds of expiry notices are in descending order, or none', () => {
  const daysOf = (text?: string) => readConfig({ RESEAL_EXPIRY_NOTICE_DAYS: text }).config.callbacks.noticeDays;
  assert.deepEqual([daysOf(), daysOf('7, 60,1'), daysOf('none')], [[30, 14, 7, 1], [60, 7, 1], []]);
});
