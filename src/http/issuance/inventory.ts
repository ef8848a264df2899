// GET /openapi/v3/orders and /openapi/v3/certs: what the account has, by what is known of it, as JSON or CSV. Extensions of
// the specification.
import Type from 'typebox';
import { type Catalog, findProduct } from '../../domain/catalog/products.ts';
import { ORDER_STATUSES } from '../../domain/certificate/order.ts';
import {
  type CertificateEntry,
  LISTED_STATUSES,
  MAX_SUFFIX_LABELS,
  searchedName,
  searchedSuffix,
} from '../../domain/issuance/inventory.ts';
import { spellingsOf } from '../../domain/support/ports.ts';
import type { ShowOrders } from '../../usecases/issuance/show-orders.ts';
import type { Api } from '../front/api.ts';
import { callerOf } from '../front/authentication.ts';
import { prefersCsv, sendCsv } from '../front/csv.ts';
import { timeOf, wordOf } from '../front/filters.ts';
import { NextAfter, PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, list, moment, nullable, word } from '../front/values.ts';
import { OrderSummary, summaryOf } from './order-view.ts';

const optional = <T extends Type.TSchema>(schema: T) => Type.Optional(schema);
const FILTER = {
  serial_number: optional(Type.String({ description: 'Hexadecimal; also that of an encryption certificate.' })),
  name: optional(Type.String({ description: 'A name of it: exactly this one.' })),
  name_suffix: optional(
    Type.String({
      minLength: 1,
      description: `A domain of at most ${MAX_SUFFIX_LABELS} labels: the name itself, and what lies below it.`,
    }),
  ),
  product: optional(Type.String({ description: 'The id of a product, or one of its numbers.' })),
  revoked: optional(Type.String({ meaning: { type: 'boolean' } })),
};
const ENDS = {
  expires_before: optional({
    ...DateTime,
    description: 'The certificate, of an order the current one, ends before then.',
  }),
  expires_after: optional({ ...DateTime, description: 'It ends then or later.' }),
};
const ListedStatus = word('ListedCertificateStatus', LISTED_STATUSES);
const OrderQuery = Type.Object({
  status: optional(Type.String({ enum: [...ORDER_STATUSES] })),
  ...FILTER,
  ...ENDS,
  ...PageQuery.properties,
});
const CertificateQuery = Type.Object({
  status: optional(
    Type.String({
      enum: [...LISTED_STATUSES],
      description: 'Left out: `issued` and `revoked`. A certificate that has ended is `issued` as before.',
    }),
  ),
  ...FILTER,
  ...ENDS,
  ...PageQuery.properties,
});

const Entry = Type.Object(
  {
    id: Type.String(),
    order_id: Type.String(),
    product: Type.String(),
    status: ListedStatus,
    is_current: Type.Boolean({ description: 'Whether it is the current certificate of its order.' }),
    common_name: nullable(Type.String()),
    dns_names: list(Type.String()),
    serial_number: nullable(Type.String({ description: 'Lower-case hexadecimal.' })),
    not_before: nullable(DateTime),
    not_after: nullable(DateTime),
    version: nullable(Type.Integer({ description: '1, 2, 3 … within the order.' })),
    revoked_at: nullable(DateTime),
    revocation_reason: nullable(Type.String()),
  },
  { title: 'CertificateEntry' },
);
const Orders = Type.Object({ orders: list(OrderSummary), next_after: NextAfter });
const Certificates = Type.Object({ certificates: list(Entry), next_after: NextAfter });

const PAGES =
  'With a filter that little passes, a page may hold less than its limit and still have a next_after: go on from there, with ' +
  'the same filters. A parameter that is not listed here is refused. With `Accept: text/csv` the page is CSV, and the next ' +
  'one is in the `Link` header.';

export function inventoryOperations(api: Api, show: ShowOrders, products: Catalog): void {
  const config = { action: 'read' } as const;
  api.get(
    '/orders',
    {
      config,
      schema: {
        operationId: 'listOrders',
        summary: 'List the orders',
        description: `In the order in which they were placed; by expiry, the first to end comes first. ${PAGES}`,
        tags: ['orders'],
        'x-reseal-extension': true,
        'x-csv': true,
        querystring: OrderQuery,
        errors: [],
        response: answers('OrderList', Orders),
      },
    },
    async (request, reply) => {
      const { status, ...query } = request.query;
      const page = pageOf(request.query, OrderQuery);
      const filter = {
        ...filterOf(query, products),
        ...(status !== undefined && { status: wordOf('status', status, ORDER_STATUSES) }),
      };
      const { rows, nextAfter } = await show.orders(callerOf(request).account.id, filter, page);
      const orders = rows.map(summaryOf);
      reply.header('vary', 'accept');
      if (prefersCsv(request.headers.accept)) return sendCsv({ request, reply }, OrderSummary, orders, nextAfter);
      return success({ orders, next_after: nextAfter });
    },
  );

  api.get(
    '/certs',
    {
      config,
      schema: {
        operationId: 'listCertificates',
        summary: 'List the certificates',
        description: `The first to end comes first; by name or product, order by order. ${PAGES}`,
        tags: ['certificates'],
        'x-reseal-extension': true,
        'x-csv': true,
        querystring: CertificateQuery,
        errors: [],
        response: answers('CertificateList', Certificates),
      },
    },
    async (request, reply) => {
      const { status, ...query } = request.query;
      const page = pageOf(request.query, CertificateQuery);
      const filter = {
        ...filterOf(query, products),
        ...(status !== undefined && { status: wordOf('status', status, LISTED_STATUSES) }),
      };
      const { rows, nextAfter } = await show.certificates(callerOf(request).account.id, filter, page);
      const certificates = rows.map(entryView);
      reply.header('vary', 'accept');
      if (prefersCsv(request.headers.accept)) return sendCsv({ request, reply }, Entry, certificates, nextAfter);
      return success({ certificates, next_after: nextAfter });
    },
  );
}

type Query = Omit<Type.Static<typeof OrderQuery>, 'status'>;

const filterOf = (query: Query, products: Catalog) => ({
  ...(query.serial_number !== undefined && { serial: serialOf(query.serial_number) }),
  ...(query.name !== undefined && { name: searchedName(query.name) }),
  ...(query.name_suffix !== undefined && { nameSuffix: searchedSuffix(query.name_suffix) }),
  // One that is not offered any more still has orders.
  ...(query.product !== undefined && { product: findProduct(products, query.product)?.id ?? query.product }),
  ...(query.revoked !== undefined && { isRevoked: wordOf('revoked', query.revoked, ['true', 'false']) === 'true' }),
  ...(query.expires_before !== undefined && { expiresBefore: timeOf('expires_before', query.expires_before) }),
  ...(query.expires_after !== undefined && { expiresAfter: timeOf('expires_after', query.expires_after) }),
});

/** As tools print it, too: in upper case, with colons or leading zeros. */
const serialOf = (text: string): string => spellingsOf(text).hex ?? text;

const entryView = (entry: CertificateEntry): Type.Static<typeof Entry> => ({
  id: entry.id,
  order_id: entry.orderId,
  product: entry.productId,
  status: entry.status,
  is_current: entry.isCurrent,
  common_name: entry.commonName,
  dns_names: entry.names,
  serial_number: entry.serial,
  not_before: moment(entry.notBefore),
  not_after: moment(entry.notAfter),
  version: entry.version,
  revoked_at: moment(entry.revokedAt),
  revocation_reason: entry.revocationReason,
});
