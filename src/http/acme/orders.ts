// Orders of ACME clients: newOrder, the order, its finalization, the orders of an account.
import type { FastifyReply } from 'fastify';
import { ACME_PATHS, orderedProduct } from '../../domain/acme/directory.ts';
import { requireObject, requirePostAsGet } from '../../domain/acme/jws.ts';
import { identifierOf, parseNewOrder } from '../../domain/acme/new-order.ts';
import { malformed } from '../../domain/acme/problem.ts';
import type { StoredProblem } from '../../domain/acme/stored-problem.ts';
import type { Product } from '../../domain/catalog/products.ts';
import { pem } from '../../domain/certificate/pem.ts';
import type { Locale } from '../../kernel/locale.ts';
import type { FinalizeOrder } from '../../usecases/acme/finalize-order.ts';
import type { PlaceAcmeOrder } from '../../usecases/acme/place-acme-order.ts';
import type { ShowAcmeOrders, ShownAcmeOrder } from '../../usecases/acme/show-acme-orders.ts';
import type { AcmeCaller } from '../../usecases/acme/tools.ts';
import { nextAfter } from '../front/paging.ts';
import { requireOwn } from './accounts.ts';
import type { AcmeDoor, AcmeRequest } from './door.ts';
import { storedProblemView } from './problem-table.ts';

export interface OrderServices {
  readonly placeAcmeOrder: PlaceAcmeOrder;
  readonly finalizeOrder: FinalizeOrder;
  readonly showAcmeOrders: ShowAcmeOrders;
  readonly offered: () => readonly Product[];
}

const PAGE = 100;
/** Issuing takes milliseconds, and a client that polls sooner learns nothing. */
const RETRY_AFTER_SECONDS = 1;

export const callerIn = (door: AcmeDoor, request: AcmeRequest): AcmeCaller => ({
  bound: request,
  accountUrl: door.url(`${ACME_PATHS.account}/${request.account.id}`),
  requestId: request.requestId,
});

export function orderResources(door: AcmeDoor, services: OrderServices): void {
  const { placeAcmeOrder, finalizeOrder, showAcmeOrders, offered } = services;
  const urlOf = (id: string): string => door.url(`${ACME_PATHS.order}/${id}`);

  async function send(request: AcmeRequest, reply: FastifyReply, id: string) {
    const shown = await showAcmeOrders.order(callerIn(door, request), id);
    if (shown.status === 'processing') reply.header('retry-after', RETRY_AFTER_SECONDS);
    reply.header('location', urlOf(id));
    return orderView(door, shown, request.locale);
  }

  async function place(request: AcmeRequest, reply: FastifyReply) {
    const wanted = parseNewOrder(requireObject(request.payload));
    const chosen = { product: request.product, profile: wanted.profile };
    const product = orderedProduct(offered(), chosen, request.binding);
    const id = await placeAcmeOrder(callerIn(door, request), product, wanted);
    reply.code(201);
    return await send(request, reply, id);
  }
  door.byAccount(ACME_PATHS.newOrder, place);
  door.byAccount(`${ACME_PATHS.newOrder}/:product`, place);

  door.byAccount(`${ACME_PATHS.order}/:id`, async (request, reply) => {
    requirePostAsGet(request.payload);
    return await send(request, reply, request.params.id ?? '');
  });

  door.byAccount(`${ACME_PATHS.order}/:id/finalize`, async (request, reply) => {
    const { id = '' } = request.params;
    const csr = derIn(requireObject(request.payload).csr, 'csr');
    await finalizeOrder(callerIn(door, request), id, pem('CERTIFICATE REQUEST', csr));
    return await send(request, reply, id);
  });

  door.byAccount(`${ACME_PATHS.account}/:id/orders`, async (request, reply) => {
    requireOwn(request);
    requirePostAsGet(request.payload);
    const { cursor } = request.query;
    const page = { after: typeof cursor === 'string' && /^\w*$/.test(cursor) ? cursor : '', limit: PAGE };
    const ids = await showAcmeOrders.orders(callerIn(door, request), page);
    const next = nextAfter(ids, page);
    const path = `${ACME_PATHS.account}/${request.account.id}/orders`;
    if (next !== null) reply.header('link', `<${door.url(path)}?cursor=${next}>;rel="next"`);
    return { orders: ids.map(urlOf) };
  });
}

function orderView(door: AcmeDoor, { order, acme, authorizations, status }: ShownAcmeOrder, locale: Locale) {
  const url = door.url(`${ACME_PATHS.order}/${order.id}`);
  return {
    status,
    expires: new Date(acme.expiresAt).toISOString(),
    // Those that were ordered: a reissue may have changed the names of the order since.
    identifiers: (authorizations.length > 0 ? authorizations.map(({ name }) => name) : order.names).map(identifierOf),
    ...(acme.notAfter !== null && { notAfter: acme.notAfter }),
    profile: order.productId,
    ...(acme.replaces && { replaces: acme.replaces.certId }),
    authorizations: authorizations.map(({ id }) => door.url(`${ACME_PATHS.authorization}/${id}`)),
    finalize: `${url}/finalize`,
    ...(status === 'valid' && { certificate: door.url(`${ACME_PATHS.certificate}/${acme.certificateId}`) }),
    ...(status === 'invalid' && { error: storedProblemView(acme.problem ?? NOT_ISSUED, locale) }),
  };
}

/** Of an order that was canceled through another door, or waited in vain for an answer of DNS. */
const NOT_ISSUED: StoredProblem = {
  type: 'unauthorized',
  detail: {
    en: 'The order was canceled, or ended before its certificate could be issued. Place a new one.',
    zh: '订单已取消，或在证书签发前结束，请重新下单。',
  },
};

/** Base64url without padding, in its one spelling. */
export function derIn(value: unknown, member: string): Uint8Array {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'base64url') : Buffer.alloc(0);
  if (bytes.length > 0 && bytes.toString('base64url') === value) return bytes;
  throw malformed(
    `${member} must be DER in base64url without padding, and not PEM.`,
    `${member} 须为无填充 base64url 编码的 DER，而非 PEM。`,
  );
}
