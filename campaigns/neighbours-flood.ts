// Entry point of the process that floods, apart from the one that measures: sends one kind of request from every flooder, as
// fast as it is answered, until it is told to stop; then tells how often each code was answered. Niced, so that on a
// small machine it takes its time from nobody.
import { Agent, request } from 'node:http';
import { setPriority } from 'node:os';
import { FLOODS, type Flooder, type FloodKind, type FloodMeans, type FloodRequest } from './floods.ts';

export interface FloodOrder {
  readonly url: string;
  readonly kind: FloodKind;
  readonly flooders: readonly Flooder[];
  readonly means: FloodMeans;
}

const LOWEST = 19;
const ANSWER_MS = 30_000;

let isStopping = false;
let sent = 0;
const counts: Record<string, number> = {};
const agent = new Agent({ keepAlive: true });

function send(url: string, { ssl: { key } }: Flooder, { method, path, json, headers }: FloodRequest): Promise<string> {
  const all = {
    ...{ 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey, 'Content-Type': 'application/json' },
    ...{ 'Content-Length': Buffer.byteLength(json), ...headers },
  };
  return new Promise((resolve) => {
    const asking = request(url + path, { method, agent, timeout: ANSWER_MS, headers: all }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => (text += chunk));
      response.on('error', () => {});
      response.on('close', () => resolve(response.complete ? (JSON.parse(text).code ?? '') : 'cut off'));
    });
    asking.on('timeout', () => asking.destroy(new Error('no answer in time')));
    asking.on('error', () => resolve('no answer'));
    asking.end(json);
  });
}

async function lane({ url, kind, means }: FloodOrder, flooder: Flooder): Promise<void> {
  while (!isStopping) {
    const code = await send(url, flooder, FLOODS[kind](flooder, `u${process.pid}x${++sent}`, means));
    counts[code] = (counts[code] ?? 0) + 1;
  }
}

setPriority(LOWEST);
process.on('message', (message: FloodOrder | 'stop') => {
  if (message === 'stop') {
    isStopping = true;
    return;
  }
  void Promise.all(message.flooders.map((flooder) => lane(message, flooder))).then(() => {
    process.send?.(counts, () => process.exit());
  });
});
