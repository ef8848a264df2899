// The signer process from the service's side, against a double that hangs, crashes and lies on demand.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { pinFromFile } from '../../../src/adapters/hsm/pin-file.ts';
import { readAnswer } from '../../../src/adapters/hsm/protocol.ts';
import { LIMITS, type SignerLimits } from '../../../src/adapters/hsm/signer.ts';
import { tokenKeys } from '../../../src/adapters/hsm/token-keys.ts';
import { NotSigned } from '../../../src/domain/certificate/authority.ts';
import { DOUBLE, doubleToken } from '../../support/double-token.ts';

const QUICK: SignerLimits = { ...LIMITS, waitMs: 10_000, firstDelayMs: 10, maxDelayMs: 80 };
/** Long enough for a busy machine to answer what does not hang. */
const SOON = { requestMs: 1_500 };
/** RSA, because the double needs no library for it and starts faster. */
const PEM = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();
const newToken = () => doubleToken(PEM);

function opened(token: ReturnType<typeof doubleToken>, limits: Partial<SignerLimits> = {}) {
  const seen: string[] = [];
  const observer = {
    onAnswered: () => void seen.push('answered'),
    onFailed: (kind: string) => void seen.push(kind),
    onStarted: (isRestart: boolean) => void (isRestart && seen.push('restart')),
  };
  const keys = tokenKeys({
    pinFor: ({ pinFile }, name) => pinFromFile(pinFile ?? undefined, name, token.folder),
    observe: () => observer,
    limits: { ...QUICK, ...limits },
    program: DOUBLE,
  });
  const keyType = token.publicKey.asymmetricKeyType === 'rsa' ? 'rsa' : 'p256';
  const key = keys.open(token.uri, keyType, token.publicKey.export({ type: 'spki', format: 'der' }));
  return { keys, key, seen, [Symbol.dispose]: () => keys.close() };
}

const BYTES = Buffer.from('what is signed');
/** How a request ended: `signed`, or whether it certainly is not. */
const outcome = (signed: Promise<unknown>): Promise<string> =>
  signed.then(
    () => 'signed',
    (error) => {
      assert.ok(error instanceof NotSigned, String(error));
      assert.ok((error.facts.retryAfterSeconds ?? 0) >= 1);
      return error.isCertain ? 'unsigned' : 'unsure';
    },
  );

/** Requests until one is signed: how each ended. Bounded by the test's time. */
async function untilSigned(sign: () => Promise<unknown>): Promise<string[]> {
  const seen: string[] = [];
  for (;;) {
    const one = await outcome(sign());
    seen.push(one);
    if (one === 'signed') return seen;
    // The back-off of another process can only be waited for.
    await sleep(10);
  }
}

for (const [kind, pem] of [
  ['p256', generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })],
  ['rsa', PEM],
] as const) {
  test(`a ${kind} signature comes back in the form that certificates have`, async () => {
    using token = opened(doubleToken(String(pem)));
    const signatures = await Promise.all(Array.from({ length: 20 }, () => token.key.sign('sha256', BYTES)));
    assert.equal(signatures.length, 20);
    assert.deepEqual(new Set(token.seen), new Set(['answered']));
  });
}

/** Whether a signature may exist, for each way of failing after the request was sent. */
const FAULTS = {
  ...{ hang: 'unsure', crash: 'unsure', garbage: 'unsure', flood: 'unsure', stranger: 'unsure', wrong: 'unsure' },
  ...{ unsure: 'unsure', lost: 'unsigned' },
} as const;
for (const [behaves, expected] of Object.entries(FAULTS)) {
  test(`a process that answers with ${behaves} is replaced, and nothing is sent twice`, async () => {
    const double = newToken();
    using token = opened(double, behaves === 'hang' ? SOON : {});
    assert.equal(await outcome(token.key.sign('sha256', BYTES)), 'signed');
    double.set({ behaves });
    assert.equal(await outcome(token.key.sign('sha256', Buffer.from('lost'))), expected);
    double.set({ behaves: 'sign' });
    await untilSigned(() => token.key.sign('sha256', BYTES));
    assert.ok(token.seen.includes('restart'));
    const digests = double.asked().filter((line) => line.startsWith('sign '));
    assert.equal(digests.length, 3);
  });
}

test('a key that the token has not fails alone: the process stays', async () => {
  const double = newToken();
  using token = opened(double);
  double.set({ behaves: 'missing' });
  assert.equal(await outcome(token.key.sign('sha256', BYTES)), 'unsigned');
  double.set({ behaves: 'sign' });
  assert.equal(await outcome(token.key.sign('sha256', BYTES)), 'signed');
  assert.deepEqual(token.seen, ['key', 'answered']);
});

test('while it fails again and again requests are refused at once, but for one that tries', async () => {
  const double = newToken();
  using token = opened(double, { maxDelayMs: 60_000, firstDelayMs: 5_000 });
  double.set({ opens: false });
  assert.equal(await outcome(token.key.sign('sha256', BYTES)), 'unsigned');
  using again = opened(double, { firstDelayMs: 1, maxDelayMs: 20 });
  assert.equal(await outcome(again.key.sign('sha256', BYTES)), 'unsigned');
  assert.throws(() => again.key.requireReady?.(), NotSigned);
  const facts = again.keys.states()[0];
  assert.deepEqual([facts?.token, facts?.lastFailure], ['double', 'the module has no such token']);
  double.set({ opens: true });
  assert.equal((await untilSigned(() => again.key.sign('sha256', BYTES))).at(-1), 'signed');
  assert.equal(again.keys.states()[0]?.failures, 0);
});

test('the queue is bounded: what does not fit is refused, and was not sent', async () => {
  const double = newToken();
  using token = opened(double, { maxQueued: 2, ...SOON });
  assert.equal(await outcome(token.key.sign('sha256', BYTES)), 'signed');
  double.set({ behaves: 'hang' });
  const all = await Promise.all(Array.from({ length: 10 }, () => outcome(token.key.sign('sha256', BYTES))));
  // Four have a session, and the two that waited get one in the next process.
  const counts = ['unsure', 'unsigned'].map((kind) => all.filter((one) => one === kind).length);
  assert.deepEqual(counts, [6, 4]);
  assert.equal(double.asked().filter((line) => line.startsWith('sign ')).length, 7);
});

test('a PIN that the token refused is tried once, by all processes and restarts together', async () => {
  const double = newToken();
  writeFileSync(double.pinFile, '9999\n');
  for (let start = 0; start < 3; start += 1) {
    using token = opened(double);
    assert.equal(await outcome(token.key.sign('sha256', BYTES)), 'unsigned');
  }
  assert.deepEqual(double.asked(), ['open false']);
  assert.doesNotMatch(readFileSync(join(double.folder, 'hsm-refused-pins.json'), 'utf8'), /9999/);
  writeFileSync(double.pinFile, '1234\n');
  utimesSync(double.pinFile, 1, 1);
  using token = opened(double);
  assert.equal(await outcome(token.key.sign('sha256', BYTES)), 'signed');
});

test('a PIN file that others can read, or that is no single line, is not used', () => {
  const double = newToken();
  const why = (file: string | undefined): string => {
    const read = pinFromFile(file, 'double', double.folder)();
    return 'why' in read ? read.why : 'used';
  };
  assert.equal(why(double.pinFile), 'used');
  const open = join(double.folder, 'open');
  writeFileSync(open, '1234', { mode: 0o644 });
  assert.match(why(open), /read by other users/);
  writeFileSync(double.pinFile, '12\n34\n');
  assert.match(why(double.pinFile), /one line/);
  assert.match(why(join(double.folder, 'none')), /ENOENT/);
  assert.match(why(undefined), /RESEAL_HSM_PIN_FILE/);
});

test('a command ends although the process of a token still runs: it is ended with its signer', async () => {
  const double = newToken();
  const token = opened(double);
  const pending = token.key.sign('sha256', BYTES).then(() => token.key.sign('sha256', BYTES));
  double.set({ behaves: 'sign' });
  await pending;
  token.keys.close();
  assert.equal(await outcome(token.key.sign('sha256', BYTES)), 'unsigned');
});

test('an answer is one that a signer process gives, or none', () => {
  assert.deepEqual(readAnswer('{"kind":"signature","id":1,"signature":"00ff"}'), {
    ...{ kind: 'signature', id: 1, signature: '00ff' },
  });
  const failure = { kind: 'token', text: 'a\nb\u202e', isUnsigned: 'yes' };
  const read = readAnswer(JSON.stringify({ kind: 'failed', id: 1, failure }));
  assert.deepEqual(read, { kind: 'failed', id: 1, failure: { kind: 'token', text: 'a?b?', isUnsigned: false } });
  for (const line of ['', 'null', '[]', '{}', '{"kind":"signature","id":1.5,"signature":"00"}', '{"kind":"ready"']) {
    assert.equal(readAnswer(line), undefined, line);
  }
  fc.assert(fc.property(fc.json(), (line) => void readAnswer(line)));
});
