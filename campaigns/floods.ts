// What one account can ask of the service that costs much more than its request: a table of operations, each valid.
import { csrFor, type PlacedOrder } from '../test/support/orders.ts';

/** One of those that flood: all of one account, or each of its own. */
export interface Flooder {
  readonly ssl: PlacedOrder;
  /** Of a product with cloud-held keys. */
  readonly signing: PlacedOrder;
}

export interface FloodMeans {
  /** Slow to verify. */
  readonly costlyCsr: string;
  /** Accepts connections and says nothing. */
  readonly silentReceiver: string;
}

export interface FloodRequest {
  readonly method: 'POST' | 'PUT';
  readonly path: string;
  readonly json: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** `unique` differs for every request. */
type Flood = (flooder: Flooder, unique: string, means: FloodMeans) => FloodRequest;

/** The campaign's name server answers nothing for names under it. */
export const SILENT_DOMAIN = 'silent-names.com';

const HUGE_BYTES = 240 * 1024;
const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

const post = (path: string, body: unknown): FloodRequest => ({
  ...{ method: 'POST', path: `/openapi/v3/${path}`, json: JSON.stringify(body) },
});
const wanting = (certificate: object) => ({ certificate: { csr: csrFor(), sign_hash: 'sha256', ...certificate } });
const reissue = ({ ssl }: Flooder, certificate: object = {}) =>
  post(`orders/${ssl.id}/reissue`, wanting({ common_name: 'www.example.com', ...certificate }));

/** A reissue with 240 KiB of something that the service does not know. */
function huge(flooder: Flooder, unique: string, something: string): FloodRequest {
  const { json, ...request } = reissue(flooder);
  return { ...request, json: json.replace(/}$/, `,"unknown":${something}}`), headers: { 'idempotency-key': unique } };
}

export const FLOODS = {
  silent_dns: (_, unique) => ({
    ...post('orders/ssl-dv', {
      ...wanting({ common_name: `${unique}.${SILENT_DOMAIN}`, dns_names: [`a.${unique}.${SILENT_DOMAIN}`] }),
      dcv_method: 'dns-persist',
    }),
  }),
  costly_csrs: (flooder, _, { costlyCsr }) => reissue(flooder, { csr: costlyCsr }),
  cloud_keys: ({ signing }) =>
    post(`orders/${signing.id}/reissue`, {
      certificate: { csr_from: 'sign-cloud-csc', sign_hash: 'sha256' },
      sign_key_pin: 'Blue-Harbour-73',
    }),
  callback_tests: (_, unique, { silentReceiver }) => ({
    ...post('account/callback/test', { url: `${silentReceiver}/${unique}`, access_key: 'an access key' }),
    method: 'PUT',
  }),
  hundred_names: (_, unique) =>
    post(
      'orders/ssl-dv',
      wanting({
        common_name: `${unique}.example.com`,
        dns_names: Array.from({ length: 99 }, (_item, index) => `n${index}.${unique}.example.com`),
      }),
    ),
  nested_bodies: (flooder, unique) => huge(flooder, unique, deep(HUGE_BYTES / 2)),
  huge_bodies: (flooder, unique) =>
    huge(flooder, unique, JSON.stringify(Array(Math.floor(HUGE_BYTES / 14)).fill({ a: [1], b: 2 }))),
  dry_runs: (flooder) => {
    const { path, ...request } = reissue(flooder);
    return { ...request, path: `${path}?dry_run=true` };
  },
} as const satisfies Record<string, Flood>;

export type FloodKind = keyof typeof FLOODS;
export const FLOOD_KINDS = Object.keys(FLOODS) as FloodKind[];
