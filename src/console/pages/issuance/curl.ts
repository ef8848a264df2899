// The same request as a curl command. Key, secret and access code are placeholders.
import type { Schema } from '../../shell/wire.ts';

/** Single quotes end the quoting of a shell, and nothing else does. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

interface Request {
  readonly path: string;
  readonly body: Partial<Schema<'ReissueRequest'> & Schema<'PlaceOrderRequest'>>;
  readonly keyId: string;
  /** Only for what changes something. */
  readonly idempotencyKey?: string;
}

export function curlOf({ path, body, keyId, idempotencyKey }: Request): string {
  const address = new URL(`../openapi/v3/${path}`, document.baseURI);
  const shown = body.sign_key_pin === undefined ? body : { ...body, sign_key_pin: 'ACCESS-CODE' };
  return [
    `curl --fail-with-body -X POST ${quoted(String(address))}`,
    `-H ${quoted(`X-CC-Key-ID: ${keyId}`)}`,
    '-H "X-CC-Auth-Key: $RESEAL_SECRET"',
    `-H ${quoted('Content-Type: application/json')}`,
    ...(idempotencyKey === undefined ? [] : [`-H ${quoted(`Idempotency-Key: ${idempotencyKey}`)}`]),
    `-d ${quoted(JSON.stringify(shown, null, 2))}`,
  ].join(' \\\n  ');
}
