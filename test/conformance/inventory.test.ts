// The inventory on both engines: whatever combination of filters is asked for, the pages together are exactly what a plain
// comparison of all records finds, each once, and nothing of another account.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CertificateRecord } from '../../src/domain/certificate/certificate.ts';
import type { Order } from '../../src/domain/certificate/order.ts';
import {
  type CertificateFilter,
  MAX_SUFFIX_LABELS,
  type OrderFilter,
  searchedSuffix,
  termsOf,
} from '../../src/domain/issuance/inventory.ts';
import type { Listed, Page } from '../../src/domain/page.ts';
import type { Store } from '../../src/domain/store.ts';
import { bothEngines } from '../support/engines.ts';
import { combinations } from '../support/inventory-filters.ts';
import { storeTests } from '../support/order-store.ts';
import { certificate, EVERY_BYTE, issued, NOW, order, preparation, revocation, voided } from '../support/records.ts';

const NAMES = [
  ['www.example.com', '*.shop.example.com'],
  ['example.com'],
  ['www.example.com.evil.org', 'myexample.com'],
  ['Acme Ltd. example.com'],
] as const;
const STATUSES = ['issued', 'issued', 'reissuing', 'revoked', 'canceled'] as const;
const STATES = ['issued', 'issued', 'revoked', 'pending', 'canceled', 'voided'] as const;

interface Filled {
  readonly orders: Order[];
  readonly certificates: { readonly record: CertificateRecord; readonly isRevoked: boolean; readonly order: Order }[];
}

const countOf = (index: number) => 1 + (index % STATES.length);

/** Orders of account a and, with the same names, of b; of each the first certificates of the list of states. */
async function fill(store: Store): Promise<Filled> {
  const filled: Filled = { orders: [], certificates: [] };
  const { publicKey } = issued('any');
  await store.escrowedKeys.insert({
    ...{ id: 'e', accountId: 'a', orderId: 'o', createdAt: NOW },
    ...{ publicKey, privateKey: EVERY_BYTE },
  });
  const half = { escrowedKeyId: 'e', serial: 'half', der: EVERY_BYTE, envelope: EVERY_BYTE };
  const halves = new Map([['7c1', half]]);
  for (let index = 0; index < 30; index += 1) {
    const names = NAMES[index % NAMES.length] ?? [];
    const isHolder = names[0]?.includes(' ') ?? false;
    const one = order(`o${String(index).padStart(2, '0')}`, {
      accountId: index % 5 === 4 ? 'b' : 'a',
      productId: index % 3 === 0 ? 'tls-private' : 'ssl-dv',
      status: STATUSES[index % STATUSES.length] ?? 'issued',
      ...{ commonName: names[0] ?? null, names: isHolder ? [] : [...names] },
      currentCertificateId: `${index}c1`,
    });
    await store.orders.insert(one);
    if (one.accountId === 'a') filled.orders.push(one);
    for (const [number, state] of STATES.slice(0, countOf(index)).entries()) {
      const id = `${index}c${number + 1}`;
      // The second certificate lost a name that its order has.
      const own = number === 1 ? one.names.slice(0, 1) : one.names;
      const common = { orderId: one.id, accountId: one.accountId, commonName: one.commonName, names: own };
      const prepared = preparation(`5e${index}${number}`, { notAfter: NOW + ((index * 7 + number) % 12) });
      const unissued = certificate(id, { ...common, pendingSince: NOW });
      const record: CertificateRecord =
        state === 'pending' || state === 'canceled'
          ? unissued
          : state === 'voided'
            ? voided(id, { ...common, preparation: prepared })
            : issued(id, { ...common, preparation: prepared, version: number + 1, encryption: halves.get(id) ?? null });
      await store.certificates.insert(record);
      const ref = { accountId: one.accountId, orderId: one.id, certificateId: id };
      if (state === 'canceled') await store.certificates.cancel(ref, { reason: 'requested', at: NOW });
      const isRevoked = state === 'revoked' || (state === 'voided' && index % 2 === 0);
      if (isRevoked) await store.revocations.schedule(one.accountId, id, revocation({ revokedAt: NOW }));
      const kept = state === 'canceled' ? { ...unissued, state, cancellation: null } : record;
      if (one.accountId === 'a') filled.certificates.push({ record: kept, isRevoked, order: one });
    }
  }
  return filled;
}

/** All pages of three, one after the other. */
async function ids(list: (page: Page) => Promise<Listed<{ readonly id: string }>>): Promise<string[]> {
  const found: string[] = [];
  for (let after: string | undefined; ; ) {
    const { rows, nextAfter } = await list({ after, limit: 3 });
    found.push(...rows.map(({ id }) => id));
    if (nextAfter === null) return found;
    after = nextAfter;
  }
}

type Named = Pick<OrderFilter, 'name' | 'nameSuffix'>;
type Ends = Pick<OrderFilter, 'expiresAfter' | 'expiresBefore'>;
const isNamed = ({ name, nameSuffix }: Named, names: readonly (string | null)[]): boolean =>
  (name === undefined || names.includes(name)) &&
  (nameSuffix === undefined || names.some((one) => one === nameSuffix || one?.endsWith(`.${nameSuffix}`)));
const isWithin = ({ expiresAfter, expiresBefore }: Ends, end: number | undefined): boolean =>
  (expiresAfter === undefined || (end !== undefined && end >= expiresAfter)) &&
  (expiresBefore === undefined || (end !== undefined && end < expiresBefore));
const is = <T>(wanted: T | undefined, found: T): boolean => wanted === undefined || wanted === found;

/** Every filter alone and every pair, and of the other combinations one of 97. */
const some = <Filter extends object>(filters: readonly Filter[]): Filter[] =>
  filters.filter((filter, index) => index % 97 === 0 || Object.keys(filter).length < 3);

const COMMON = {
  serial: ['5e01', '5e20', 'half', 'ff'],
  product: ['tls-private'],
  name: ['www.example.com', 'Acme Ltd. example.com'],
  nameSuffix: ['example.com', 'shop.example.com'],
  expiresAfter: [NOW + 3],
  expiresBefore: [NOW + 8],
  isRevoked: [true, false],
};

for (const engine of await bothEngines()) {
  const testStore = storeTests(engine);
  describe(engine.name, () => {
    testStore('every combination of filters finds what meets all of them', async (store) => {
      const { orders, certificates } = await fill(store);
      const endOf = (record: CertificateRecord) => ('preparation' in record ? record.preparation.notAfter : undefined);
      const serialsOf = (record: CertificateRecord) =>
        'preparation' in record ? [record.preparation.serial, record.encryption?.serial] : [];
      const of = (one: Order) =>
        certificates.filter(({ order: owner }) => owner.id === one.id).map(({ record }) => record);
      for (const filter of some(combinations<OrderFilter>({ ...COMMON, status: ['issued', 'revoked'] }))) {
        const expected = orders.filter((one) => {
          const current = of(one).find(({ id }) => id === one.currentCertificateId);
          return (
            is(filter.product, one.productId) &&
            is(filter.status, one.status) &&
            is(filter.isRevoked, one.status === 'revoked') &&
            isNamed(filter, [...one.names, one.commonName]) &&
            isWithin(filter, current && endOf(current)) &&
            (filter.serial === undefined || of(one).some((record) => serialsOf(record).includes(filter.serial)))
          );
        });
        const found = await ids((page) => store.inventory.orders('a', filter, page));
        // The order of the test store itself has no names.
        const plain = found.filter((id) => id !== 'o');
        assert.deepEqual([...plain].sort(), expected.map(({ id }) => id).sort(), JSON.stringify(filter));
      }
      for (const filter of some(
        combinations<CertificateFilter>({ ...COMMON, status: ['issued', 'revoked', 'pending', 'canceled'] }),
      )) {
        const expected = certificates.filter(({ record, isRevoked, order: owner }) => {
          const status = isRevoked ? 'revoked' : record.state;
          const isIssued = record.state === 'issued';
          return (
            record.state !== 'voided' &&
            (filter.status === undefined ? isIssued : filter.status === status) &&
            is(filter.product, owner.productId) &&
            is(filter.isRevoked, isRevoked) &&
            isNamed(filter, [...record.names, record.commonName]) &&
            isWithin(filter, endOf(record)) &&
            (filter.serial === undefined || serialsOf(record).includes(filter.serial))
          );
        });
        const found = await ids((page) => store.inventory.certificates('a', filter, page));
        assert.deepEqual([...found].sort(), expected.map(({ record }) => record.id).sort(), JSON.stringify(filter));
      }
    });
  });
}

for (const engine of await bothEngines()) {
  storeTests(engine)(`${engine.name}: names that an older instance has written are completed`, async (store, rows) => {
    const { orders, inventory } = store;
    const old = order('p', { names: ['www.example.com'] });
    await orders.insert(old);
    await rows("delete from order_name where name like '.%'");
    await rows('update order_name set owner_id = null');
    const found = async () => (await inventory.orders('a', { nameSuffix: 'example.com' }, { limit: 9 })).rows;
    assert.deepEqual(await found(), []);
    assert.equal(await orders.completeNames(9), 1);
    assert.deepEqual(await found(), [old]);
    assert.equal(await orders.completeNames(9), 0);
  });
}

test('a name is found by itself and by each domain that it is or lies in, up to a number of labels', () => {
  assert.deepEqual(termsOf('*.a.example.com'), ['*.a.example.com', '.a.example.com', '.example.com', '.com']);
  assert.deepEqual(termsOf('Acme Ltd. a.com'), ['Acme Ltd. a.com']);
  const long = Array.from({ length: 100 }, () => 'a').join('.');
  assert.equal(termsOf(long).length, 1 + MAX_SUFFIX_LABELS);
  assert.equal(searchedSuffix('*.Example.COM.'), 'example.com');
  for (const text of ['', 'a b', '%', long]) {
    assert.throws(() => searchedSuffix(text), { code: 'invalid_parameters' }, text);
  }
});
