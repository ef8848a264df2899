// Bytes on a socket, for requests that no well-behaved client would send.
import { once } from 'node:events';
import net from 'node:net';

const MAX_ANSWER = 1024 * 1024;

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends the text as it is and reads until the server closes. Ask for `Connection: close`, or let it be an error. */
export async function sendRaw(url: string, text: string): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    answer += chunk;
    if (answer.length > MAX_ANSWER) socket.destroy();
  });
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(text);
  await once(socket, 'close');
  const [head = '', ...body] = answer.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.split(': ')[1] ?? ''])),
    body: body.join('\r\n\r\n'),
  };
}
