// What an example is filled with: orders, certificates, deliveries, cloud keys and products of the reader's own account.
import { account, type Query } from '../shell/api.ts';
import type { Operation } from './document.ts';

/** A value for a parameter, and how people call it. */
export interface OwnValue {
  readonly value: string;
  readonly label: string;
}

/** As lists of the interface have it; what a list does not have is missing. */
interface Item {
  readonly id: string;
  readonly status?: string;
  readonly state?: string;
  readonly name?: string;
  readonly common_name?: string | null;
  readonly alternative_order_id?: string | null;
  readonly action?: string;
  readonly hint?: string | null;
}

type List = 'orders' | 'certs' | 'products' | 'cloud-keys' | 'account/callback/deliveries';
interface Source {
  readonly list: List;
  /** Tried first; without a match the whole list is. */
  readonly query?: Query;
  readonly pick?: (item: Item) => string | null | undefined;
}

/** The most that is offered to choose from. */
const OFFERED = 20;

const WAITING: Source = { list: 'orders', query: { status: 'domain_verifing' } };
/** By operation, where not every one of the list makes sense. */
const FITTING: Readonly<Record<string, Source>> = {
  placeOrder: { list: 'products' },
  reissueCertificate: { list: 'orders', query: { status: 'issued' } },
  getOrderByAlternativeId: { list: 'orders', pick: (order) => order.alternative_order_id },
  cancelOrder: WAITING,
  changeDcvMethod: WAITING,
  validateDomains: WAITING,
  checkDomains: WAITING,
  revokeCertificate: { list: 'certs', query: { status: 'issued' } },
  resendDelivery: { list: 'account/callback/deliveries', query: { state: 'failed' } },
};
const BY_PATH: readonly (readonly [RegExp, List])[] = [
  [/\/orders\/\{/, 'orders'],
  [/\/certs\/\{/, 'certs'],
  [/\/cloud-keys\/\{/, 'cloud-keys'],
  [/\/deliveries\/\{/, 'account/callback/deliveries'],
];

/** Where the values of the operation's path come from; undefined if it has none. */
export function sourceOf({ operationId, path }: Operation): Source | undefined {
  const list = BY_PATH.find(([pattern]) => pattern.test(path))?.[1];
  return FITTING[operationId] ?? (list && { list });
}

export async function ownValues(
  { list, query, pick = ({ id }) => id }: Source,
  signal: AbortSignal,
): Promise<OwnValue[]> {
  const read = async (filter: Query | undefined) => {
    const paged = list === 'products' ? {} : { limit: OFFERED, ...filter };
    const data = await account<Readonly<Record<string, unknown>>>('GET', list, { query: paged, signal });
    return (Object.values(data).find(Array.isArray) ?? []) as Item[];
  };
  let items = await read(query);
  if (items.length === 0 && query) items = await read(undefined);
  return items.flatMap((item) => {
    const value = pick(item);
    return value ? [{ value, label: labelOf(item) }] : [];
  });
}

const labelOf = ({ id, common_name, name, action, hint, status, state }: Item): string =>
  [common_name ?? name ?? action ?? hint ?? id, status ?? state].filter(Boolean).join(' · ');

interface OwnOrder {
  readonly product: string;
  readonly common_name: string | null;
  readonly dns_names: readonly string[];
  readonly certificate: { readonly csr?: string | null } | null;
}

/** The service is not asked at every letter of an id that is being typed. */
const COMPLETE_ID = /^[0-9a-z]{26}$/;

export interface RecordedBodies {
  readonly chosen: unknown;
  readonly all: readonly unknown[];
}

/** The recorded body of a reissue, with the names and the CSR of the order itself. Other bodies are as recorded. */
export async function ownBody(
  { operationId }: Operation,
  { chosen, all }: RecordedBodies,
  id: string,
  signal: AbortSignal,
): Promise<unknown> {
  if (operationId !== 'reissueCertificate' || !COMPLETE_ID.test(id) || !hasCsr(chosen)) return chosen;
  const order = await account<OwnOrder>('GET', `orders/${encodeURIComponent(id)}`, { signal });
  const csr = order.certificate?.csr;
  // The key of such an order is held by the service.
  if (!csr) return all.find((one) => !hasCsr(one)) ?? chosen;
  // How long it is valid is up to the product.
  const { validity_days: _, ...kept } = chosen.certificate;
  const dnsNames = order.dns_names.filter((name) => name !== order.common_name);
  return { ...chosen, certificate: { ...kept, csr, common_name: order.common_name ?? '', dns_names: dnsNames } };
}

type Json = Readonly<Record<string, unknown>>;
const hasCsr = (body: unknown): body is Json & { readonly certificate: Json } =>
  Boolean((body as { readonly certificate?: { readonly csr?: string } }).certificate?.csr);
