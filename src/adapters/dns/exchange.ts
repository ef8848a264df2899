// One question at one resolver, whichever the transport: where it goes, and what can become of it.
import { isIPv4, isIPv6 } from 'node:net';
import { decodeResponse, type Query, type Question, type Response } from './message.ts';

export interface ServerAddress {
  readonly host: string;
  readonly family: 4 | 6;
  readonly port: number;
}

export type Outcome =
  | Exclude<Response, { readonly kind: 'truncated' }>
  /** Truncated, malformed or not ours, so possibly forged. After UDP, the question is repeated over TCP. */
  | { readonly kind: 'odd' }
  | { readonly kind: 'unreachable' };

export type Settle<Result> = (result: Result) => void;

/** Calls `settle` at most once: not before it returns, and not after the question was withdrawn. */
export type Ask = (question: Question, settle: Settle<Outcome>) => AskedQuestion;

export interface AskedQuestion {
  withdraw(): void;
}

const DNS_PORT = 53;

/** Reads `192.0.2.53`, `192.0.2.53:5353`, `2001:db8::53` and `[2001:db8::53]:5353`. Undefined for anything else. */
export function parseServer(text: string): ServerAddress | undefined {
  if (isIPv6(text)) return { host: text, family: 6, port: DNS_PORT };
  const [, bracketed, plain = '', digits] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = Number(digits ?? DNS_PORT);
  if (port < 1 || port > 65_535) return undefined;
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, family: 6, port } : undefined;
  return isIPv4(plain) ? { host: plain, family: 4, port } : undefined;
}

/** Never throws. Takes a message that `isResponseTo` the query. */
export function outcomeOf(query: Query, message: Buffer): Outcome {
  try {
    const response = decodeResponse(query, message);
    return response.kind === 'truncated' ? { kind: 'odd' } : response;
  } catch {
    return { kind: 'odd' };
  }
}
