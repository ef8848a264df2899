// Every combination of the filters of the inventory, for tests that must hold whatever is asked for.
import type { CertificateFilter, OrderFilter } from '../../src/domain/issuance/inventory.ts';

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

export const ORDER_FILTERS = combinations<OrderFilter>({ ...common, status: ['issued', 'reissuing'] });
export const CERTIFICATE_FILTERS = combinations<CertificateFilter>({
  ...common,
  status: ['issued', 'revoked', 'pending'],
});
