// An example callback receiver in Node. Copy it; the comments say why.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
// In a project of your own: from 'reseal-client/verify-callback'.
import { verifyCallback } from '../clients/typescript/src/verify-callback.ts';

const { CERT_FILE, KEY_FILE, ACCESS_KEY, SIGNING_SECRET, HOST = '127.0.0.1', PORT = '9443' } = process.env;
// Fail at start-up: without its secrets it would accept forged callbacks.
if (!ACCESS_KEY || !/^whsec_[\w+/]{24,}=*$/.test(SIGNING_SECRET)) {
  throw new Error('ACCESS_KEY or SIGNING_SECRET is missing');
}
const SECRETS = { accessKey: ACCESS_KEY, secret: SIGNING_SECRET };
const [MAX_BYTES, MAX_HANDLED] = [64 * 1024, 10_000];
const handled = new Set(); // In production: a table with a unique column, written in the transaction that does the work.

async function receive(request, response) {
  const [chunks, answer] = [[], (status) => response.writeHead(status).end()];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    // Bounds memory before the sender is authenticated.
    if (length > MAX_BYTES) return request.socket.destroy();
    chunks.push(chunk);
  }
  // The raw bytes: JSON that was parsed and written again may differ from what was signed.
  const verified = verifyCallback(request.headers, Buffer.concat(chunks), SECRETS);
  const callback = await verified.catch((error) => void process.stderr.write(`${error.message}\n`));
  if (!callback) return answer(401);
  // Respond first, work later: a slow response counts as a failure. In production, store the callback before: after a 200
  // it is not sent again.
  answer(200);
  // Delivery is at least once: a retry has the same id, e.g. when the response was lost.
  const { id, event } = callback;
  if (handled.has(id)) return;
  handled.add(id);
  if (handled.size > MAX_HANDLED) handled.delete(handled.values().next().value);
  // Never log the headers: they contain the access key.
  process.stdout.write(`${event.action_id} ${event.order_id}\n`);
}

const server = createServer({ cert: readFileSync(CERT_FILE), key: readFileSync(KEY_FILE) }, (request, response) =>
  // A dropped connection must not stop the server.
  receive(request, response).catch((error) => process.stderr.write(`${error.message}\n`)),
);
server.listen(Number(PORT), HOST, () =>
  process.stdout.write(`listening on https://${HOST}:${server.address().port}\n`),
);
