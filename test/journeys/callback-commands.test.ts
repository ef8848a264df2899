// `reseal callback` as operators and authors of receivers use it: output as text and as JSON, exit codes, and that no
// secret is printed except the signing secret, once.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { newFolder } from '../support/app.ts';
import { callbackIn } from '../support/callback-app.ts';
import { reseal, withoutStore } from '../support/in-process.ts';
import { HOST, Outside } from '../support/outside.ts';
import type { Finished } from '../support/process.ts';
import { OK, respond, type Script } from '../support/receiver.ts';
import { TestCa } from '../support/receiver-certificates.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/reseal.mjs', import.meta.url));
const outside = await Outside.open();
after(() => outside[Symbol.asyncDispose]());
const receiver = await outside.receiver();
const URL_OF_IT = `https://${HOST}:${receiver.port}/hook`;

const folder = newFolder();
const file = (name: string, content: string | Uint8Array): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const SETTINGS = {
  RESEAL_DATA_DIR: folder,
  RESEAL_DNS_SERVERS: `127.0.0.1:${outside.dns.port}`,
  RESEAL_CALLBACK_ALLOW: '127.0.0.1',
  RESEAL_CALLBACK_ROOTS_FILE: file('roots.pem', outside.ca.root),
  RESEAL_CALLBACK_TEST_RATE: '100/h',
};

/** All output so far. */
let printed = '';
/** Secrets that must not be printed, or for a signing secret at most once. */
const ACCESS_KEYS = ['key-from-a-file', 'key-from-standard-input', 'temporary-key', 'another-key'] as const;
const signingSecrets: string[] = [];

/** Empty standard input by default. Commands that read it need a process of their own. */
async function run(args: readonly string[], { input = '', more = {} } = {}): Promise<Finished> {
  const finished = args.includes('-') ? await spawned(args, input) : await reseal(args, { ...SETTINGS, ...more });
  printed += finished.out + finished.err;
  return { ...finished, err: withoutStore(finished.err) };
}

async function spawned(args: readonly string[], input: string): Promise<Finished> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...SETTINGS };
  const child = spawn(process.execPath, [LAUNCHER, ...args], { env, stdio: 'pipe' });
  child.stdin.on('error', () => {}).end(input);
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, out, err };
}

async function json(args: readonly string[], input?: string) {
  const { code, out, err } = await run([...args, '--json'], { ...(input !== undefined && { input }) });
  assert.deepEqual([code, err], [0, ''], out + err);
  return JSON.parse(out);
}
const newAccount = async (...options: string[]): Promise<string> =>
  (await json(['account', 'create', 'Acme', ...options])).account.id;

/** Text output with white space normalized and times replaced by TIME; nothing else may be there. */
async function prints(args: readonly string[], expected: string, input?: string): Promise<void> {
  const { code, out, err } = await run(args, { ...(input !== undefined && { input }) });
  assert.deepEqual([code, err], [0, ''], args.join(' ') + err);
  const seen = out.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replace(/whsec_\S+/g, (secret) => {
    signingSecrets.push(secret);
    return 'SECRET';
  });
  assert.equal(seen.replace(/ +/g, ' '), expected, args.join(' '));
}

/** Refused the same way in text and JSON. */
async function refuses(args: readonly string[], exitCode: number, code: string, words: RegExp): Promise<void> {
  const [{ code: exited, out, err }, machine] = await Promise.all([run(args), run([...args, '--json'])]);
  assert.deepEqual([exited, out], [exitCode, ''], `${args.join(' ')}: ${out}${err}`);
  assert.match(err, words, args.join(' '));
  const { error } = JSON.parse(machine.out);
  assert.deepEqual([machine.code, machine.err, error.code], [exitCode, '', code], args.join(' '));
  assert.ok(err.startsWith(`reseal: ${error.message}\n`), err);
  // The phases are the same in both formats; only ids and milliseconds differ between two tests.
  const { stage, reason } = error.details ?? {};
  if (stage) assert.match(err, new RegExp(`"stage": "${stage}",\\s+"reason": ${reason ? `"${reason}"` : null}`));
}

const KEY_FILE = file('key.txt', 'key-from-a-file\n');
const OTHER_KEY_FILE = file('other.txt', 'another-key\r\nand a second line\n');
const account = await newAccount();
const address = (url: string, key = KEY_FILE) => ['--url', url, '--access-key-file', key];

test('set, show and delete: text output', async () => {
  await prints(['callback', 'show', account], 'The account has no callback settings.\n');
  const table = (state: string, actions = 'all but order:expiring') =>
    `URL STATE ACTIONS UPDATED\n${URL_OF_IT} ${state} ${actions} TIME\n`;
  const secret = '\nSigning secret: SECRET\nKeep it now: it is not shown again.\n';
  await prints(['callback', 'set', account, ...address(URL_OF_IT)], table('active') + secret);
  await prints(['callback', 'show', account], table('active'));
  await prints(['callback', 'set', account, '--disabled'], table('paused'));
  await prints(
    ['callback', 'set', account, '--disabled', '--actions', 'order:issued,order:revoked'],
    table('paused', 'order:issued order:revoked'),
  );
  await prints(['callback', 'show', account], table('paused', 'order:issued order:revoked'));
  await prints(
    ['callback', 'set', account, ...address(URL_OF_IT, '-')],
    table('paused', 'order:issued order:revoked'),
    'key-from-standard-input\n',
  );
  await prints(['callback', 'set', account, '--enabled', '--actions', 'all'], table('active'));
  await prints(['callback', 'delete', account], 'Deleted.\n');
  await prints(['callback', 'delete', account], 'There was nothing to delete.\n');
  await prints(['callback', 'set', account, ...address(URL_OF_IT)], table('active') + secret);
  const [first, second] = signingSecrets.slice(-2);
  assert.notEqual(first, second, 'the old secret was deleted with the settings');
});

test('set, show and delete: JSON output; the access key comes from a file or standard input, and is kept if omitted', async () => {
  const id = await newAccount();
  const keySent = async (): Promise<string | undefined> => {
    await json(['callback', 'test', id]);
    return callbackIn(receiver).headers['x-cc-callback-auth'];
  };
  assert.deepEqual(await json(['callback', 'show', id]), { callback: null });
  const { callback, signing_secret: secret, ...rest } = await json(['callback', 'set', id, ...address(URL_OF_IT)]);
  signingSecrets.push(secret);
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  const { updated_at: at, ...view } = callback;
  assert.deepEqual([view, rest], [{ url: URL_OF_IT, disabled: false }, {}]);
  assert.equal(new Date(at).toISOString(), at);
  const suppressed = { count: 0, has_more: false, since: null };
  assert.deepEqual(await json(['callback', 'show', id]), { callback: { ...callback, suppressed } });
  assert.equal(await keySent(), 'key-from-a-file');
  const paused = await json(['callback', 'set', id, '--disabled', '--actions', 'order:revoked']);
  assert.deepEqual(Object.keys(paused), ['callback']);
  assert.deepEqual([paused.callback.disabled, paused.callback.enabled_actions], [true, ['order:revoked']]);
  assert.equal(await keySent(), 'key-from-a-file', 'the test is sent anyway');
  const again = await json(['callback', 'set', id, ...address(URL_OF_IT, '-')], 'key-from-standard-input');
  assert.deepEqual(Object.keys(again), ['callback']);
  assert.equal(await keySent(), 'key-from-standard-input');
  await json(['callback', 'set', id, ...address(URL_OF_IT, OTHER_KEY_FILE)]);
  assert.equal(await keySent(), 'another-key', 'the first line, without its line ending');
  assert.deepEqual(await json(['callback', 'delete', id]), { deleted: true });
  assert.deepEqual(await json(['callback', 'delete', id]), { deleted: false });
});

test('a managed-PKI account can only be configured by the CLI', async () => {
  const id = await newAccount('--kind', 'managed_pki');
  const { signing_secret: secret, callback } = await json(['callback', 'set', id, ...address(URL_OF_IT)]);
  signingSecrets.push(secret);
  assert.equal(callback.url, URL_OF_IT);
  assert.equal((await json(['callback', 'test', id])).callback.http_status, 200);
  const temporary = await json(['callback', 'test', id, ...address(`${URL_OF_IT}/temporary`, '-')], 'temporary-key');
  assert.equal(temporary.callback.http_status, 200);
  const { line, headers } = callbackIn(receiver);
  assert.deepEqual([line, headers['x-cc-callback-auth']], ['POST /hook/temporary HTTP/1.1', 'temporary-key']);
  assert.equal((await json(['callback', 'show', id])).callback.updated_at, callback.updated_at);
  assert.deepEqual(await json(['callback', 'delete', id]), { deleted: true });
});

test('errors come with a remedy, and nothing is saved', async () => {
  const id = await newAccount();
  const set = ['callback', 'set', id];
  const bad = (url: string) => [...set, ...address(url)];
  const long = file('long.txt', 'k'.repeat(257));
  const table: [string[], number, string, RegExp][] = [
    [['callback', 'show'], 2, 'usage', /takes ACCOUNT, given: none.*callback show --help/s],
    [[...set, '--disabled'], 1, 'callback_not_configured', /no saved callback settings/],
    [[...set, '--url', URL_OF_IT], 1, 'invalid_parameters', /url and access_key are saved together/],
    [[...set, '--access-key-file', KEY_FILE], 1, 'invalid_parameters', /url and access_key are saved together/],
    [bad('hooks.example.com'), 1, 'invalid_callback_url', /does not begin with https:\/\//],
    [bad('http://hooks.example.com/'), 1, 'callback_url_not_https', /https:\/\//],
    [[...set, ...address(URL_OF_IT, '-')], 1, 'invalid_parameters', /access_key is empty/],
    [[...set, ...address(URL_OF_IT, long)], 1, 'invalid_callback_url', /at most 256 characters/],
    [[...set, ...address(URL_OF_IT, '/nowhere')], 2, 'usage', /\/nowhere cannot be read.*What to do/s],
    [[...bad(URL_OF_IT), '--actions', 'order:lost'], 1, 'invalid_parameters', /order:issued, order:revoked/],
    [[...bad(URL_OF_IT), '--access-key', 'another-key'], 2, 'usage', /--access-key/],
    [['callback', 'test', id, '--url', URL_OF_IT], 1, 'callback_not_configured', /Send both url and access_key/],
  ];
  for (const row of table) await refuses(...row);
  for (const command of ['show', 'set', 'delete', 'test']) {
    const words = /no such account.*reseal account list/;
    await refuses(['callback', command, 'nobody'], 1, 'account_not_found', words);
  }
  assert.deepEqual(await json(['callback', 'show', id]), { callback: null });
});

test('a test prints what happened, and its exit code says whether it succeeded', async () => {
  const { code, out } = await run(['callback', 'test', account]);
  assert.equal(code, 0);
  assert.match(
    out,
    /^The receiver answered 200\.\nresolve \d+ ms, connect \d+ ms, tls \d+ ms, .*\nTLSv1\.3, certificate expires in 29 days\n$/,
  );
  const { callback } = await json(['callback', 'test', account]);
  assert.deepEqual([callback.stage, callback.reason, callback.http_status], ['response', null, 200]);
  assert.equal(callback.webhook_id, callbackIn(receiver).headers['webhook-id']);

  const untrusted = await outside.receiver({ identity: new TestCa('Nobody’s Root').identity([HOST]) });
  const gone = await outside.receiver();
  const { port: closed } = gone;
  await gone[Symbol.asyncDispose]();
  outside.dns.set('private.example.test', 'A', ['10.0.0.1']);
  outside.dns.set('broken.example.test', 'A', 'servfail');
  outside.dns.set('wrong.example.test', 'A', ['127.0.0.1']);
  const repeats: Script = (socket, request) => socket.end(`HTTP/1.1 500 No\r\n\r\n${request}`);
  const FAILED = 'callback_send_error';
  const NOT_200 = 'callback_response_not_200';
  const table: [string, Script, string, RegExp][] = [
    [URL_OF_IT, respond('HTTP/1.1 503 Busy\r\n\r\n'), NOT_200, /answered with the status 503; only 200 counts/],
    [URL_OF_IT, repeats, NOT_200, /the status 500/],
    [URL_OF_IT, respond('nonsense\r\n\r\n'), FAILED, /is not HTTP\/1\.1/],
    [URL_OF_IT, (socket) => socket.destroy(), FAILED, /closed the connection before it had answered/],
    [`https://${HOST}:${untrusted.port}/`, respond(OK), FAILED, /is not trusted/],
    [`https://${HOST}:${closed}/`, respond(OK), FAILED, /refused the connection/],
    [`https://wrong.example.test:${receiver.port}/`, respond(OK), FAILED, /for another host/],
    ['https://missing.example.test/', respond(OK), FAILED, /has no address in DNS/],
    ['https://broken.example.test/', respond(OK), FAILED, /DNS could not answer/],
    ['https://private.example.test/', respond(OK), 'callback_private_domain', /private address/],
  ];
  for (const [url, script, error, words] of table) {
    receiver.script = script;
    await refuses(['callback', 'test', account, ...address(url)], 1, error, words);
  }
  receiver.script = respond(OK);
  const slow = { more: { RESEAL_CALLBACK_TEST_RATE: '1/h' } };
  const id = await newAccount();
  const temporary = ['callback', 'test', id, ...address(URL_OF_IT)];
  assert.equal((await run(temporary, slow)).code, 0);
  const tooFast = await run(temporary, slow);
  assert.deepEqual([tooFast.code, /Too many requests/.test(tooFast.err)], [1, true]);
});

/** A callback as the author of a receiver captured it. */
async function captured() {
  const id = await newAccount();
  const { signing_secret: secret } = await json(['callback', 'set', id, ...address(URL_OF_IT)]);
  signingSecrets.push(secret);
  await json(['callback', 'test', id]);
  const { headers, text: body } = callbackIn(receiver);
  return {
    body,
    secret: secret as string,
    id: headers['webhook-id']!,
    timestamp: headers['webhook-timestamp']!,
    signature: headers['webhook-signature']!,
    auth: headers['x-cc-callback-auth']!,
    keyFile: KEY_FILE,
  };
}
type Captured = Omit<Awaited<ReturnType<typeof captured>>, 'body'> & { readonly body: string | Uint8Array };

const verifyArgs = ({ body, secret, id, timestamp, signature, auth, keyFile }: Captured): string[] => [
  ...['callback', 'verify', '--body', file('body.json', body), '--secret-file', file('secret.txt', `${secret}\n`)],
  ...[`--id=${id}`, `--timestamp=${timestamp}`, `--signature=${signature}`],
  ...[`--auth-file=${file('auth.txt', `${auth}\n`)}`, '--access-key-file', keyFile],
];

const STEPS = ['X-CC-Callback-Auth', 'webhook-timestamp', 'webhook-signature'];
/** The steps reported WRONG, the same in text and JSON, and the exit code. */
async function wrongIn(one: Captured): Promise<string[]> {
  const args = verifyArgs(one);
  const [{ code, out, err }, machine] = await Promise.all([run(args), run([...args, '--json'])]);
  const { ok, steps } = JSON.parse(machine.out) as { ok: boolean; steps: { step: string; ok: boolean }[] };
  const wrong = steps.filter((step) => !step.ok).map(({ step }) => step);
  assert.deepEqual([ok, machine.code, steps.map(({ step }) => step)], [wrong.length === 0, ok ? 0 : 1, STEPS]);
  assert.deepEqual(
    [code, err, [...out.matchAll(/^WRONG +([^:]+):/gm)].map(([, step]) => step)],
    [machine.code, '', wrong],
  );
  assert.match(out, ok ? /\n\nThis callback is genuine\.\n$/ : /\n\nDo not believe this callback\.\n$/);
  return wrong;
}

/** Signed as Standard Webhooks specifies, independently of our code. */
const signed = ({ secret, id }: Captured, timestamp: string, body: string | Uint8Array): string =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest('base64')}`;

test('verify reports which step of a callback failed', async () => {
  const real = await captured();
  assert.equal(real.signature, signed(real, real.timestamp, real.body));
  const seconds = Math.floor(Date.now() / 1000);
  const at = (timestamp: string): Captured => ({ ...real, timestamp, signature: signed(real, timestamp, real.body) });
  const [AUTH, TIME, SIGNATURE] = STEPS;
  const table: [string, Captured, (string | undefined)[]][] = [
    ['as it came', real, []],
    ['one byte changed', { ...real, body: real.body.replace('issued', 'Issued') }, [SIGNATURE]],
    ['one byte more', { ...real, body: `${real.body}\n` }, [SIGNATURE]],
    ['one byte that is no text', { ...real, body: Buffer.from(real.body).fill(0xff, 5, 6) }, [SIGNATURE]],
    ['another id', { ...real, id: `${real.id}x` }, [SIGNATURE]],
    ['an old one', at(String(seconds - 3_600)), [TIME]],
    ['one of the future', at(String(seconds + 3_600)), [TIME]],
    ['its time changed', { ...real, timestamp: String(seconds - 3_600) }, [TIME, SIGNATURE]],
    ['no time at all', { ...real, timestamp: 'yesterday' }, [TIME, SIGNATURE]],
    ['another secret', { ...real, secret: `whsec_${Buffer.alloc(32).toString('base64')}` }, [SIGNATURE]],
    ['another access key', { ...real, keyFile: OTHER_KEY_FILE }, [AUTH]],
    ['two signatures, the second right', { ...real, signature: `v1,AAAA ${real.signature}` }, []],
    ['another version', { ...real, signature: real.signature.replace('v1,', 'v2,') }, [SIGNATURE]],
    ['no signature', { ...real, signature: '' }, [SIGNATURE]],
  ];
  for (const [what, one, wrong] of table) assert.deepEqual(await wrongIn(one), wrong, what);
});

test('verify uses the raw timestamp and body, not a normalized form', async () => {
  const real = await captured();
  const body = Buffer.from(real.body).fill(0xff, 5, 6);
  const table: [string, Captured, string[]][] = [
    ['a zero before the time', { ...real, timestamp: `0${real.timestamp}` }, ['webhook-signature']],
    ['bytes that are no text', { ...real, body, signature: signed(real, real.timestamp, body) }, []],
  ];
  const seen: string[][] = [];
  for (const [, one] of table) seen.push(await wrongIn(one));
  assert.deepEqual(
    seen,
    table.map(([, , wrong]) => wrong),
  );
});

test('verify needs no store, and reports missing arguments', async () => {
  const nowhere = { more: { RESEAL_DATA_DIR: '/dev/null/x' } };
  const args = verifyArgs(await captured());
  assert.equal((await run(args, nowhere)).code, 0);
  const withoutAuth = args.filter((one) => !/^--(auth|access-key-file)/.test(one) && one !== KEY_FILE);
  const { code, out } = await run(withoutAuth, nowhere);
  assert.deepEqual([code, /X-CC-Callback-Auth/.test(out)], [0, false]);
  for (const name of ['id', 'timestamp', 'signature']) {
    await refuses(
      args.filter((one) => !one.startsWith(`--${name}=`)),
      2,
      'usage',
      new RegExp(`--${name} is missing`),
    );
  }
  await refuses(['callback', 'verify'], 2, 'usage', /is missing.*callback verify --help/s);
  await refuses(
    args.map((one) => (one.endsWith('body.json') ? '/nowhere' : one)),
    2,
    'usage',
    /\/nowhere cannot be read/,
  );
});

test('the output contains no access key, and each signing secret once', () => {
  for (const key of ACCESS_KEYS) assert.equal(printed.includes(key), false, key);
  assert.ok(signingSecrets.length >= 5);
  for (const secret of signingSecrets) assert.equal(printed.split(secret).length - 1, 1);
  for (const name of globSync(join(folder, 'reseal.db*'))) {
    const bytes = readFileSync(name);
    for (const secret of [...ACCESS_KEYS, ...signingSecrets]) assert.equal(bytes.includes(secret), false, name);
  }
});
