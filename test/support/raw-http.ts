// Raw bytes on a socket, for malformed requests and for requests sent in pieces.
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

  /** Stops reading: responses back up on the server's side. */
  pause(): void {
    this.#socket.pause();
  }

  end(): void {
    this.#socket.destroy();
  }

  /** Resolves when the data received so far matches; rejects if the server closes first. */
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

/** Sends the text verbatim and reads until the server closes, so send `Connection: close` or a malformed request. */
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
