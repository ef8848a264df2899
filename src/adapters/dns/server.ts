// One resolver of ours: its transports, and whether it can be reached. Silence alone does not tell: the name servers of a name
// may be slow. So a resolver in doubt is asked for the root, which every resolver knows; any answer will do.
import { attempt, type SILENT } from './attempt.ts';
import { type Ask, type Outcome, parseServer, type ServerAddress } from './exchange.ts';
import { type Question, ROOT } from './message.ts';
import { tcpExchange } from './tcp.ts';
import { udpPool } from './udp.ts';

/** For the log, the metrics and readiness. Called once per change. */
export type OnReachability = (address: string, isReachable: boolean) => void;

const PROBE: Question = { name: ROOT, type: 'NS' };
type Probed = Outcome | typeof SILENT;
/** However many lookups doubt it. */
const PROBE_EVERY_MS = 1_000;

export class Server {
  readonly address: string;
  readonly udp: Ask;
  readonly tcp: Ask;
  readonly #onChange: OnReachability;
  #isDown = false;
  #probe: Promise<boolean> = Promise.resolve(true);
  #probedAt = Number.NEGATIVE_INFINITY;

  constructor(address: string, { host, family, port }: ServerAddress, onChange: OnReachability) {
    this.address = address;
    this.udp = udpPool({ host, family, port });
    this.tcp = tcpExchange({ host, family, port });
    this.#onChange = onChange;
  }

  /** As of the last answer, or of the last probe. */
  get isDown(): boolean {
    return this.#isDown;
  }

  noteAnswer(): void {
    // What a probe has found before says nothing any more.
    if (this.#isDown) this.#probedAt = Number.NEGATIVE_INFINITY;
    this.#note(false);
  }

  /** By a probe that began at `since` or later, or a moment ago. Takes `limitMs` at most. */
  isReachable(since: number, limitMs: number): Promise<boolean> {
    const now = performance.now();
    if (this.#probedAt >= since || now - this.#probedAt < PROBE_EVERY_MS) return this.#probe;
    this.#probedAt = now;
    this.#probe = this.#ask(limitMs / 2);
    return this.#probe;
  }

  /** Over TCP as well: a datagram may be lost. SERVFAIL is an answer: a resolver of an inner network may know no root. */
  async #ask(limitMs: number): Promise<boolean> {
    const limits = { limitMs, signal: new AbortController().signal };
    for (const ask of [this.udp, this.tcp]) {
      const { kind } = await new Promise<Probed>((settle) => attempt(ask, PROBE, limits, settle));
      const isAnswer = kind === 'answer' || kind === 'servfail';
      if (isAnswer || kind === 'refused') {
        this.#note(!isAnswer);
        return isAnswer;
      }
    }
    this.#note(true);
    return false;
  }

  #note(isDown: boolean): void {
    if (isDown === this.#isDown) return;
    this.#isDown = isDown;
    this.#onChange(this.address, !isDown);
  }
}

export const serversAt = (addresses: readonly string[], onChange: OnReachability): readonly Server[] =>
  addresses.flatMap((text) => {
    const address = parseServer(text);
    return address ? [new Server(text, address, onChange)] : [];
  });
