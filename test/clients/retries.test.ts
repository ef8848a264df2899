// What the typed client does about answers that say wait, and about none: against a server that answers by script.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { inspect } from 'node:util';
import { createClient, type Limits } from '../../clients/typescript/src/client.ts';
import { attemptLimit, pause, retryAfterOf, retryDelay } from '../../clients/typescript/src/retry.ts';

interface ScriptedAnswer {
  readonly status?: number;
  readonly code?: string;
  readonly retryAfter?: string;
  readonly text?: string;
  readonly location?: string;
  /** Cuts the connection instead. */
  readonly isCut?: true;
  /** Never answers. */
  readonly isSilent?: true;
  /** Answers blanks, as long as they are read. */
  readonly isEndless?: true;
}

const OK: ScriptedAnswer = { status: 200 };
const BUSY: ScriptedAnswer = { status: 503, code: 'service_busy', retryAfter: '0' };
const TOO_FAST: ScriptedAnswer = { status: 429, code: 'request_too_fast', retryAfter: '0' };
const CUT: ScriptedAnswer = { isCut: true };
const SILENT: ScriptedAnswer = { isSilent: true };

function* blanks(): Generator<string> {
  for (;;) yield ' '.repeat(1024 * 1024);
}

let answers: ScriptedAnswer[] = [];
let received: http.IncomingMessage[] = [];
const server = http.createServer((request, response) => {
  received.push(request);
  const {
    status = 200,
    code = 'success',
    retryAfter,
    text,
    location,
    isCut,
    isSilent,
    isEndless,
  } = answers.shift() ?? OK;
  if (isCut) return void request.socket.destroy();
  if (isSilent) return;
  if (isEndless) return void Readable.from(blanks()).pipe(response);
  response.writeHead(status, {
    ...{ ...(retryAfter && { 'Retry-After': retryAfter }), ...(location && { Location: location }) },
    'X-Request-Id': 'from-the-header',
  });
  response.end(text ?? JSON.stringify({ code, message: code, request_id: 'r', data: { certificate: { id: 'c' } } }));
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
after(() => server.close());
after(() => server.closeAllConnections());

function clientFor(...script: ScriptedAnswer[]) {
  [answers, received] = [script, []];
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return createClient({ url, keyId: 'id', authKey: 'the-auth-key' });
}

const BODY = { certificate: { common_name: 'www.example.com', sign_hash: 'sha256' } } as const;
const keys = () => received.map(({ headers }) => String(headers['idempotency-key']));

test('a busy service and one that is asked too fast are asked again, with the same key', async () => {
  const client = clientFor(BUSY, TOO_FAST, OK);
  assert.deepEqual(await client.reissueCertificate('o', BODY), { certificate: { id: 'c' } });
  assert.equal(received.length, 3);
  assert.match(keys()[0] ?? '', /^[0-9a-f-]{36}$/);
  assert.equal(new Set(keys()).size, 1);
  const first = keys()[0];
  await client.reissueCertificate('o', BODY);
  assert.notEqual(keys()[3], first, 'another call has another key');
  await client.reissueCertificate('o', BODY, { idempotencyKey: 'mine' });
  assert.equal(keys()[4], 'mine');
});

test('what may have been carried out is repeated only where that does no harm', async () => {
  for (const failure of [BUSY, CUT]) {
    await clientFor(failure, OK).getOrder('o');
    await clientFor(failure, OK).cancelOrder('o');
    await clientFor(failure, OK).revokeCertificate('c');
    assert.equal(received.length, 2);
    const code = failure.code ?? 'network_error';
    await assert.rejects(clientFor(failure, OK).rotateCallbackSecret(), { code });
    assert.equal(received.length, 1);
    const codes = { pin: 'old', new_pin: 'new' };
    await assert.rejects(clientFor(failure, OK).changeCloudKeyPin('k', codes), { code });
    assert.equal(received.length, 1);
  }
  // Refused before anything was done.
  await clientFor(TOO_FAST, OK).rotateCallbackSecret();
  assert.equal(received.length, 2);
  // Of a proxy, without a body of ours.
  await clientFor({ status: 502, text: '<html>', retryAfter: '0' }, OK).getOrder('o');
  assert.equal(received.length, 2);
});

test('other errors are not repeated', async () => {
  for (const [status, code] of [
    [409, 'reissue_in_progress'],
    [500, 'service_internal_error'],
    [404, 'order_not_found'],
  ] as const) {
    await assert.rejects(clientFor({ status, code }, OK).reissueCertificate('o', BODY), {
      code,
      status,
      requestId: 'r',
    });
    assert.equal(received.length, 1);
  }
});

test('tries and time are bounded', async () => {
  const limits = { tries: 3 };
  await assert.rejects(clientFor(BUSY, BUSY, BUSY, OK).getOrder('o', { limits }), {
    code: 'service_busy',
    status: 503,
  });
  assert.equal(received.length, 3);
  // Waiting would take longer than the call may: its error comes at once.
  const later = { ...TOO_FAST, retryAfter: '3600' };
  await assert.rejects(clientFor(later, OK).getOrder('o'), { code: 'request_too_fast', retryAfter: 3600 });
  assert.equal(received.length, 1);
  await assert.rejects(clientFor(SILENT, SILENT).getOrder('o', { limits: { attemptMs: 20, tries: 2 } }), {
    code: 'timeout',
    status: null,
  });
  assert.equal(received.length, 2);
});

test('a call can be aborted while it waits for an answer, and for its next try', async () => {
  const limits = { attemptMs: 900_000, totalMs: 900_000 };
  for (const script of [SILENT, { ...BUSY, retryAfter: '600' }]) {
    const abort = new AbortController();
    const call = clientFor(script, OK).getOrder('o', { signal: abort.signal, limits });
    const ended = assert.rejects(call, /enough/);
    if (received.length === 0) await once(server, 'request');
    abort.abort(new Error('enough'));
    await ended;
    assert.equal(received.length, 1);
    await assert.rejects(clientFor(OK).getOrder('o', { signal: abort.signal }), /enough/);
    assert.equal(received.length, 0);
  }
  const abort = new AbortController();
  const pauses = [pause(900_000, abort.signal), pause(900_000, AbortSignal.abort(new Error('enough')))];
  abort.abort(new Error('enough'));
  for (const one of pauses) await assert.rejects(one, /enough/);
});

test('answers that the document does not describe are errors that show them', async () => {
  const cases = [
    [{ status: 418, code: 'of_a_later_version' }, 'of_a_later_version'],
    [{ status: 404, text: '<html>' }, null],
    [{ status: 200, text: '<html>' }, null],
    [{ status: 200, text: '[]' }, null],
    // JSON of another server would contradict the type of the answer.
    [{ status: 200, text: '{}' }, null],
    [{ status: 200, text: '{"code":"success"}' }, 'success'],
    [{ status: 200, text: '{"code":"success","data":null}' }, 'success'],
    [{ status: 204, text: '' }, null],
    // Followed, it would send the key to another host.
    [{ status: 307, location: '/elsewhere', text: '' }, null],
  ] as const;
  for (const [answer, code] of cases) {
    await assert.rejects(clientFor(answer).getOrder('o'), (error: Error & { details?: { code: string | null } }) => {
      assert.deepEqual({ name: error.name, code: error.details?.code }, { name: 'ResealError', code });
      return true;
    });
    assert.equal(received.length, 1);
  }
  await assert.rejects(clientFor({ status: 404, text: '' }).getOrder('o'), { requestId: 'from-the-header' });
});

test('an answer without end is cut off', async () => {
  const answer = clientFor({ isEndless: true }).getOrder('o');
  await assert.rejects(answer, { code: 'unexpected_response', details: { code: null, excerpt: ' '.repeat(200) } });
  assert.equal(received.length, 1);
});

test('ids are one segment of the path, and never none or another', async () => {
  const client = clientFor();
  await client.getOrder('a/../b?c');
  assert.equal(received[0]?.url, '/openapi/v3/orders/a%2F..%2Fb%3Fc');
  for (const id of ['', '.', '..']) await assert.rejects(client.getOrder(id), TypeError);
});

test('every page is asked for with the filters of the first, and a cursor that does not move ends the list', async () => {
  const page = { text: JSON.stringify({ code: 'success', data: { deliveries: [], next_after: 'same' } }) };
  await assert.rejects(async () => {
    for await (const one of clientFor(page, page, page).listDeliveries({ state: 'failed' })) assert.fail(one.id);
  }, TypeError);
  assert.deepEqual(
    received.map(({ url }) => url?.split('?')[1]),
    ['state=failed', 'state=failed&after=same'],
  );
});

test('neither a client nor its errors show the key', async () => {
  const client = clientFor(CUT);
  const [outcome] = await Promise.allSettled([client.rotateCallbackSecret()]);
  assert.equal(outcome.status, 'rejected');
  for (const shown of [client, outcome])
    assert.doesNotMatch(inspect(shown, { depth: 9, showHidden: true }), /the-auth-key/);
});

test('waits grow, are spread, and are never shorter than the answer asks for', () => {
  const limits: Limits = { tries: 9, attemptMs: 1_000, totalMs: 1_000_000 };
  const delay = (tries: number, random: number, retryAfter: number | null = null, elapsedMs = 0) =>
    retryDelay({
      error: { code: 'service_busy', status: 503, retryAfter },
      ...{ isRepeatable: true, tries, elapsedMs, limits, random },
    });
  assert.deepEqual([delay(1, 0), delay(1, 1), delay(2, 1), delay(4, 1)], [250, 500, 1_000, 4_000]);
  assert.deepEqual([delay(1, 0, 2), delay(1, 1, 2)], [2_000, 2_500]);
  assert.deepEqual([delay(9, 0), delay(1, 0, null, 999_900)], [null, null]);

  const none = { ...limits, attemptMs: Number.POSITIVE_INFINITY, totalMs: Number.POSITIVE_INFINITY };
  const attempts = [attemptLimit(limits, 0.5), attemptLimit(limits, 999_999.5), attemptLimit(none, 0)];
  assert.deepEqual(attempts, [1_000, 1, 2 ** 31 - 1]);

  const now = Date.UTC(2026, 10, 15, 12);
  const dated = ['Sun, 15 Nov 2026 12:00:07 GMT', 'Sun, 15 Nov 2026 11:00:00 GMT'].map((one) => retryAfterOf(one, now));
  assert.deepEqual(dated, [7, 0]);
  assert.deepEqual(
    ['3', '', null, 'soon', '-1'].map((one) => retryAfterOf(one, now)),
    [3, null, null, null, null],
  );
});
