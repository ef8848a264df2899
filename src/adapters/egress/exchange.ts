// One HTTP/1.1 request and response over an open connection. No agent, hence no proxy and no retry. The status decides the
// outcome; the body is kept up to a limit, and truncated there or where it breaks off.
import { type ExchangeOptions, sendByNode } from './node-exchange.ts';
import { sendPlain } from './plain-exchange.ts';
import type { ResponseHead } from './plain-response.ts';

interface ResponseFacts extends ResponseHead {
  readonly body: Uint8Array;
  /** The connection can serve another exchange. */
  readonly isReusable: boolean;
}

export async function exchange(options: ExchangeOptions): Promise<ResponseFacts> {
  const { call, scope, bodyMs } = options;
  scope.enter('request');
  const send = call.keptFor === undefined ? sendByNode : sendPlain;
  // Bounded by the call's deadline only.
  const { head, body, isReusable } = await scope.within(Number.POSITIVE_INFINITY, () => send(options));
  // A timeout, cancellation or broken body changes nothing: the status is known.
  if (!body.isComplete) await scope.within(bodyMs, () => body.ended).catch(() => {});
  return {
    status: head.status,
    headers: head.headers,
    body: body.bytes(),
    isReusable: (await isReusable?.()) ?? false,
  };
}
