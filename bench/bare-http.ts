// A bare node:http server that reads each request and answers with the same bytes: the upper bound of what a service on
// node:http can answer.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

async function serveBytes(type: string, bytes: Buffer): Promise<string> {
  const server = createServer((asked, response) => {
    asked.on('end', () => response.setHeader('content-type', type).end(bytes)).resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

if (import.meta.main) {
  const [type = '', base64 = ''] = process.argv.slice(2);
  process.send?.(await serveBytes(type, Buffer.from(base64, 'base64')));
}
