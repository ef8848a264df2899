// The grammar of plain responses, with Node's parser as an oracle: what is accepted here ends where Node says, and has the
// same status and fields. Everything else is left to Node.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { plainHead } from '../../../src/adapters/egress/plain-response.ts';

const head = (...lines: readonly string[]) => `${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
const OK = 'HTTP/1.1 200 OK';
const LENGTH = 'Content-Length: 2';

const PLAIN: Readonly<Record<string, string>> = {
  'a status and a length': head(OK, LENGTH),
  'no reason': head('HTTP/1.1 200', LENGTH),
  'an empty reason': head('HTTP/1.1 200 ', LENGTH),
  'an error': head('HTTP/1.1 503 Service Unavailable', LENGTH, 'Retry-After: 120'),
  'keep-alive in any case': head(OK, 'CONTENT-LENGTH:2', 'Connection: Keep-Alive', 'Keep-Alive: timeout=5'),
  'blanks around values': head(OK, 'Content-Length: \t 2 \t', 'X: a  b '),
  'cookies that are set': head(OK, 'Set-Cookie: c=1', LENGTH, 'Set-Cookie: d=2'),
  'an empty field': head(OK, LENGTH, 'X:'),
  'fields like properties': head(OK, LENGTH, 'constructor: x', 'toString: y'),
  '204 with a length of zero': head('HTTP/1.1 204 No Content', 'Content-Length: 0'),
};

const NOT_PLAIN: Readonly<Record<string, string>> = {
  'HTTP/1.0': head('HTTP/1.0 200 OK', LENGTH),
  'another protocol': head('RTSP/1.1 200 OK', LENGTH),
  'an interim status': head('HTTP/1.1 100 Continue', LENGTH),
  'a status of four digits': head('HTTP/1.1 2000 OK', LENGTH),
  'a head that is cut off': `${OK}\r\n${LENGTH}\r\n`,
  'bare line feeds': `${OK}\n${LENGTH}\n\n`,
  'a bare line feed in a line': head(OK, `X: a\n${LENGTH}`, LENGTH),
  'no length': head(OK),
  'two equal lengths': head(OK, LENGTH, LENGTH),
  'two lengths': head(OK, LENGTH, 'Content-Length: 3'),
  'a field that is repeated': head(OK, 'Retry-After: 300', LENGTH, 'Retry-After: 600'),
  'a list of lengths': head(OK, 'Content-Length: 2, 2'),
  'a negative length': head(OK, 'Content-Length: -2'),
  'a length with a sign': head(OK, 'Content-Length: +2'),
  'a hexadecimal length': head(OK, 'Content-Length: 0x2'),
  'a very long length': head(OK, `Content-Length: ${'0'.repeat(20)}2`),
  chunks: head(OK, 'Transfer-Encoding: chunked'),
  'chunks and a length': head(OK, LENGTH, 'Transfer-Encoding: chunked'),
  'an encoding that says nothing': head(OK, LENGTH, 'Transfer-Encoding:'),
  'a blank before the colon': head(OK, 'Content-Length : 2'),
  'a folded line': head(OK, LENGTH, 'X: a', ' b'),
  'a line without a colon': head(OK, LENGTH, 'X'),
  'a NUL': head(OK, LENGTH, 'X: a\0b'),
  'bytes beyond ASCII': head(OK, LENGTH, 'X: ü'),
  'Connection: close': head(OK, LENGTH, 'Connection: close'),
  'a list in Connection': head(OK, LENGTH, 'Connection: keep-alive, close'),
  'Connection twice': head(OK, LENGTH, 'Connection: keep-alive', 'Connection: close'),
  '204 with a length': head('HTTP/1.1 204 No Content', LENGTH),
  '304 with a length': head('HTTP/1.1 304 Not Modified', LENGTH),
  'a head of 17 KiB': head(OK, LENGTH, `X: ${'x'.repeat(17 * 1024)}`),
};

const bytesOf = (text: string) => Buffer.from(text, 'latin1');

/** What Node's client reads from exactly these bytes; undefined if it does not accept them as one response. */
async function byNode(bytes: Buffer) {
  const stream = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
  const outgoing = request({ createConnection: () => stream, method: 'POST' });
  outgoing.end();
  stream.push(bytes);
  stream.push(null);
  try {
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    outgoing.on('error', () => {});
    const body = await buffer(incoming);
    const headers = Object.entries(incoming.headers).map(([name, value]) => [name, [value].flat().join(', ')]);
    return { status: incoming.statusCode, headers: Object.fromEntries(headers), body, isComplete: incoming.complete };
  } catch {
    return undefined;
  }
}

/** Whether it is plain; then Node agrees about all of it. */
async function isPlain(text: string): Promise<boolean> {
  const found = plainHead(bytesOf(`${text}ok`));
  if (!found || found.bodyBytes > 100) return found !== undefined;
  const { status, headers, headBytes, bodyBytes } = found;
  const body = Buffer.alloc(bodyBytes, 'b');
  const expected = { status, headers: { ...headers }, body, isComplete: true };
  assert.deepEqual(await byNode(Buffer.concat([bytesOf(text).subarray(0, headBytes), body])), expected, text);
  return true;
}

test('plain responses are accepted, as Node reads them', async () => {
  for (const [title, text] of Object.entries(PLAIN)) assert.ok(await isPlain(text), title);
});

test('everything else is left to Node', async () => {
  for (const [title, text] of Object.entries(NOT_PLAIN)) assert.equal(await isPlain(text), false, title);
});

test('with any byte of a head replaced, removed or added, what is accepted is what Node reads', async () => {
  const texts = [PLAIN['keep-alive in any case'] ?? '', head(OK, LENGTH, 'Transfer-Encoding: x')];
  const others = ['\r', '\n', '\r\n', '\0', '\t', ' ', ':', ',', ';', '0', '9', 'C', '\x7f', '\xff'];
  let accepted = 0;
  for (const text of texts) {
    for (let at = 0; at < text.length; at += 1) {
      for (const other of ['', ...others]) {
        for (const end of [at, at + 1]) {
          if (await isPlain(text.slice(0, at) + other + text.slice(end))) accepted += 1;
        }
      }
    }
  }
  assert.ok(accepted > 100, `${accepted} were accepted, so that little was compared`);
});

test('the number of blanks in a head does not matter', () => {
  const blanks = ' '.repeat(8_000);
  for (const line of [`X:${blanks}${blanks}\x01`, `${blanks}:`, `Content-Length:${blanks}2${blanks}x`]) {
    assert.equal(plainHead(bytesOf(head(OK, line))), undefined);
  }
});
