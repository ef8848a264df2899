// An example callback receiver in plain Node, without dependencies. Copy it; the comments say why.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const { CERT_FILE, KEY_FILE, ACCESS_KEY, SIGNING_SECRET, HOST = '127.0.0.1', PORT = '9443' } = process.env;
// Fail at start-up: without its secrets it would accept forged callbacks.
if (!ACCESS_KEY || !/^whsec_.{24}/.test(SIGNING_SECRET)) throw new Error('ACCESS_KEY or SIGNING_SECRET is missing');
const signingKey = Buffer.from(SIGNING_SECRET.slice('whsec_'.length), 'base64');
const [MAX_BYTES, MAX_AGE_SECONDS, MAX_HANDLED] = [64 * 1024, 300, 10_000];
const handled = new Set(); // In production: a table with a unique column, written in the transaction that does the work.

// Compares digests of equal length in constant time, so that timing reveals nothing about the secret.
const digest = (text) => createHash('sha256').update(text).digest();
const isSame = (one, other) => timingSafeEqual(digest(one), digest(other));

function isGenuine({ 'x-cc-callback-auth': key = '', ...headers }, body) {
  const { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures = '' } = headers;
  // Rejects replayed callbacks. NaN compares false, so an invalid timestamp is rejected too.
  const isFresh = Math.abs(Date.now() / 1000 - Number(seconds)) <= MAX_AGE_SECONDS;
  // Over the raw bytes: parsing and serializing JSON may change them.
  const expected = createHmac('sha256', signingKey).update(`${id}.${seconds}.`).update(body).digest('base64');
  // During a secret rotation there are several signatures; one match is enough.
  const isSigned = signatures.split(' ').some((one) => isSame(one, `v1,${expected}`));
  return isSame(key, ACCESS_KEY) && isFresh && isSigned;
}

async function receive(request, response) {
  const [chunks, answer] = [[], (status) => response.writeHead(status).end()];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    // Bounds memory before the sender is authenticated.
    if (length > MAX_BYTES) return request.socket.destroy();
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  if (!isGenuine(request.headers, body)) return answer(401);
  // Respond first, work later: a slow response counts as a failure. In production, store the callback before: after a 200
  // it is not sent again.
  answer(200);
  // Delivery is at least once: a retry has the same id, e.g. when the response was lost.
  const id = request.headers['webhook-id'];
  if (handled.has(id)) return;
  handled.add(id);
  if (handled.size > MAX_HANDLED) handled.delete(handled.values().next().value);
  const { action_id, order_id } = JSON.parse(body);
  // Never log the headers: they contain the access key.
  process.stdout.write(`${action_id} ${order_id}\n`);
}

const server = createServer({ cert: readFileSync(CERT_FILE), key: readFileSync(KEY_FILE) }, (request, response) =>
  // A dropped connection must not stop the server.
  receive(request, response).catch((error) => process.stderr.write(`${error.message}\n`)),
);
server.listen(Number(PORT), HOST, () =>
  process.stdout.write(`listening on https://${HOST}:${server.address().port}\n`),
);
