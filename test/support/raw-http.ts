// Bytes on a socket, for requests that no well-behaved client would send, or not all at once.
import { once } from 'node:events';
import net from 'node:net';

const MAX_ANSWER = 1024 * 1024;

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export class RawConnection {
  readonly #socket: net.Socket;
  received = '';

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      this.received += chunk;
      if (this.received.length > MAX_ANSWER) socket.destroy();
    });
    socket.on('error', () => {});
  }

  static async to(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = net.connect(Number(port), hostname);
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  write(text: string): void {
    this.#socket.write(text);
  }

  /** Stops reading: the server's answers pile up on its side. */
  pause(): void {
    this.#socket.pause();
  }

  end(): void {
    this.#socket.destroy();
  }

  /** Resolves when what was received so far matches; rejects when the server closes before it does. */
  async until(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.received)) {
      if (this.#socket.closed) throw new Error(`closed after: ${this.received}`);
      await Promise.race([once(this.#socket, 'data'), once(this.#socket, 'close')]);
    }
  }

  async closed(): Promise<void> {
    if (!this.#socket.closed) await once(this.#socket, 'close');
  }
}

/** Sends the text as it is and reads until the server closes. Ask for `Connection: close`, or let it be an error. */
export async function sendRaw(url: string, text: string): Promise<RawAnswer> {
  const connection = await RawConnection.to(url);
  connection.write(text);
  await connection.closed();
  const [head = '', ...body] = connection.received.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.split(': ')[1] ?? ''])),
    body: body.join('\r\n\r\n'),
  };
}
