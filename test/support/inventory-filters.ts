// Every combination of the filters of the inventory, and the lists over all accounts, for tests that must hold whatever is
// asked for.
import type { Engine } from '../../src/adapters/store/engine/engine.ts';
import type { Db } from '../../src/adapters/store/engine/schema.ts';
import { inventoryIn } from '../../src/adapters/store/issuance/inventory.ts';
import { ordersIn } from '../../src/adapters/store/issuance/orders.ts';
import { allAccountsIn } from '../../src/adapters/store/support/all-accounts.ts';
import type { CertificateFilter, OrderFilter } from '../../src/domain/issuance/inventory.ts';
import type { Listed, Page } from '../../src/domain/page.ts';

/** Of each filter every value in turn, or none. */
export function combinations<Filter>(
  values: { readonly [Field in keyof Filter]?: readonly Filter[Field][] },
): Filter[] {
  return Object.entries<readonly unknown[]>(values as Record<string, readonly unknown[]>).reduce(
    (filters, [field, choices]) =>
      filters.flatMap((filter) => [filter, ...choices.map((value) => ({ ...filter, [field]: value }))]),
    [{} as Filter],
  );
}

const common = {
  serial: ['5'],
  product: ['ssl-dv'],
  name: ['www.example.com'],
  nameSuffix: ['example.com'],
  expiresBefore: [9],
  isRevoked: [true],
};

const ORDER_FILTERS = combinations<OrderFilter>({ ...common, status: ['issued', 'reissuing'] });
const CERTIFICATE_FILTERS = combinations<CertificateFilter>({
  ...common,
  status: ['issued', 'revoked', 'pending'],
});

/** Each combination of filters, first page and next. */
export function inventoryLookUps(db: Db, engine: Engine): Readonly<Record<string, () => Promise<unknown>>> {
  const { orders, certificates } = inventoryIn(db);
  const all = async <Filter>(
    list: (account: string, filter: Filter, page: Page) => Promise<Listed<unknown>>,
    filters: Filter[],
  ) => {
    for (const filter of filters) {
      const { nextAfter } = await list('a1', filter, { limit: 1 });
      if (nextAfter !== null) await list('a1', filter, { after: nextAfter, limit: 50 });
    }
  };
  return {
    'names without an owner': () => ordersIn(db, engine).completeNames(500),
    'orders by every filter': () => all(orders, ORDER_FILTERS),
    'certificates by every filter': () => all(certificates, CERTIFICATE_FILTERS),
    async 'lists over all accounts'() {
      const { accounts, waiting, lanes } = allAccountsIn(db);
      const page = { after: 'a5', limit: 50 };
      return [await accounts('x', page), await waiting(page), await lanes(false, page), await lanes(true, page)];
    },
  };
}
