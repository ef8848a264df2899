// A receiver of callbacks in plain Node, without dependencies, to copy from. The comments say why.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const { CERT_FILE, KEY_FILE, ACCESS_KEY, SIGNING_SECRET, HOST = '127.0.0.1', PORT = '9443' } = process.env;
// Without its secrets it would have to trust everyone: better not to start at all.
if (!ACCESS_KEY || !/^whsec_.{24}/.test(SIGNING_SECRET)) throw new Error('ACCESS_KEY or SIGNING_SECRET is missing');
const signingKey = Buffer.from(SIGNING_SECRET.slice('whsec_'.length), 'base64');
const [MAX_BYTES, MAX_AGE_SECONDS, MAX_REMEMBERED] = [64 * 1024, 300, 10_000];
const handled = new Set(); // In real life a table with a unique column, in the transaction that does the work.

// Digests are equally long, and compared in constant time: how long it takes tells nothing about how much was right.
const digest = (text) => createHash('sha256').update(text).digest();
const isSame = (one, other) => timingSafeEqual(digest(one), digest(other));

function isGenuine({ 'x-cc-callback-auth': key = '', ...headers }, body) {
  const { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures = '' } = headers;
  // An old callback may be one that somebody recorded. Written so that what is not a number is refused too.
  const isFresh = Math.abs(Date.now() / 1000 - Number(seconds)) <= MAX_AGE_SECONDS;
  // Over the bytes as they came: JSON that was parsed and written again need not be the same.
  const expected = createHmac('sha256', signingKey).update(`${id}.${seconds}.`).update(body).digest('base64');
  // While the secret is being changed there are two signatures; one that fits is enough.
  const isSigned = signatures.split(' ').some((one) => isSame(one, `v1,${expected}`));
  return isSame(key, ACCESS_KEY) && isFresh && isSigned;
}

async function receive(request, response) {
  const [chunks, answer] = [[], (status) => response.writeHead(status).end()];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    // Nobody may fill our memory before having proven anything.
    if (length > MAX_BYTES) return request.socket.destroy();
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  if (!isGenuine(request.headers, body)) return answer(401);
  // Answer first, work later: a slow answer counts as none. But after a 200 it is not sent again, so in real life
  // write it down before.
  answer(200);
  // The same callback can come twice, for instance when our answer was lost. Its id stays the same.
  const id = request.headers['webhook-id'];
  if (handled.has(id)) return;
  handled.add(id);
  if (handled.size > MAX_REMEMBERED) handled.delete(handled.values().next().value);
  const { action_id, order_id } = JSON.parse(body);
  // Never print the headers: the access key is in them.
  process.stdout.write(`${action_id} ${order_id}\n`);
}

const server = createServer({ cert: readFileSync(CERT_FILE), key: readFileSync(KEY_FILE) }, (request, response) =>
  // A peer that leaves in the middle is no reason to stop.
  receive(request, response).catch((error) => process.stderr.write(`${error.message}\n`)),
);
server.listen(Number(PORT), HOST, () =>
  process.stdout.write(`listening on https://${HOST}:${server.address().port}\n`),
);
