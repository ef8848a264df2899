// The inventory of an account with N certificates, written by SQL: every filter must stay a look-up. Compares the median of
// each query with that in a store of a thousand; both engines, one after the other.
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { newSealKey, sealerWith } from '../src/adapters/seal/seal.ts';
import { openEngine } from '../src/adapters/store/engine/engine.ts';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import { inventoryIn } from '../src/adapters/store/issuance/inventory.ts';
import { type DatabaseLocation, engineAt, openStore } from '../src/adapters/store/store.ts';
import type { CertificateFilter, Inventory, OrderFilter } from '../src/domain/issuance/inventory.ts';
import type { Listed } from '../src/domain/page.ts';
import { startPostgres } from '../test/support/postgres.ts';
import type { Campaign, Print } from './campaign.ts';

const SMALL = 1_000;
export const VERSIONS = 4;
const RUNS = 200;
const LIMIT = 50;
const PER_COMMIT = 50_000;
/** Deeper trees and colder pages. A scan takes hundreds of times as long. */
const MOST_GROWTH = 10;
const NEGLIGIBLE_MS = 10;
/** Of combinations, for which a page may read a thousand records one by one. */
const MOST_EXAMINING_MS = 500;

const ENGINES = {
  async sqlite(stack: AsyncDisposableStack): Promise<DatabaseLocation> {
    const folder = stack.use(mkdtempDisposableSync(join(tmpdir(), 'reseal-inventory-')));
    return { kind: 'sqlite', file: join(folder.path, 'reseal.db') };
  },
  async postgresql(stack: AsyncDisposableStack): Promise<DatabaseLocation> {
    const server = stack.use(await startPostgres());
    return { kind: 'postgresql', url: await server.createDatabase(), maxConnections: 2 };
  },
};

export const inventory: Campaign = {
  about: 'every filter of the inventory stays a look-up with N certificates in one account',
  defaultN: 100_000,
  async run(n, print) {
    const violations: string[] = [];
    for (const [name, open] of Object.entries(ENGINES)) {
      await using stack = new AsyncDisposableStack();
      const location = await open(stack);
      const store = await openStore(location, sealerWith([newSealKey()]), Date.now);
      await store.accounts.insert({ id: 'a', name: 'A', kind: 'standard', locale: 'en', createdAt: 0 });
      await store.close();
      const db = openEngine(engineAt(location, {}, true), () => {});
      stack.defer(() => db.destroy());
      const small = await measured(db, [0, Math.min(SMALL, n)], (line) => print(`${name}: ${line}`));
      const large = await measured(db, [Math.min(SMALL, n), n], (line) => print(`${name}: ${line}`));
      violations.push(...compared(name, small, large, print));
    }
    return violations;
  },
};

type Times = ReadonlyMap<string, readonly number[]>;
const at = (times: readonly number[], part: number): number => times[Math.floor((times.length - 1) * part)] ?? 0;

function compared(engine: string, small: Times, large: Times, print: Print): string[] {
  return [...large].flatMap(([what, times]) => {
    const before = small.get(what) ?? [];
    const ms = [at(before, 0.5), at(before, 0.99), at(times, 0.5), at(times, 0.99)].map((one) => one.toFixed(2));
    print(`${engine}  ${what.padEnd(40)} p50 ${ms[0]} → ${ms[2]} ms, p99 ${ms[1]} → ${ms[3]} ms`);
    const isExamining = what.includes(EXAMINING);
    const most = isExamining ? MOST_EXAMINING_MS : Math.max(NEGLIGIBLE_MS, MOST_GROWTH * at(before, 0.5));
    const isSlow = at(times, 0.5) > most;
    return isSlow ? [`${engine}: ${what} took ${ms[2]} ms, and ${ms[0]} ms with ${SMALL} certificates`] : [];
  });
}

/** Fills the store up to `to`, and runs every query with changing values. Times are sorted. */
async function measured(db: Db, [from, to]: readonly [number, number], print: Print): Promise<Times> {
  const begun = performance.now();
  for (let done = from; done < to; done += PER_COMMIT) await fill(db, [done, Math.min(done + PER_COMMIT, to)]);
  await sql`analyze`.execute(db);
  print(`filled up to ${to} certificates in ${((performance.now() - begun) / 1_000).toFixed(0)} s`);
  const times = new Map<string, number[]>();
  for (const [what, query] of Object.entries(queries(inventoryIn(db), to))) {
    const taken: number[] = [];
    for (let run = 0; run < RUNS; run += 1) {
      const started = performance.now();
      await query(1 + Math.floor((run * to) / RUNS));
      taken.push(performance.now() - started);
    }
    times.set(
      what,
      taken.sort((one, other) => one - other),
    );
  }
  return times;
}

const EXAMINING = 'examining:';
const END = 1_800_000_000_000;
const STEP_MS = 60_000;
const nameOf = (order: number): string => `n${order}.d${order % 100}.example.com`;

function queries(
  { orders, certificates }: Inventory,
  n: number,
): Readonly<Record<string, (i: number) => Promise<Listed<unknown>>>> {
  const page = { limit: LIMIT };
  const order = (i: number) => Math.ceil(i / VERSIONS);
  const both: Readonly<Record<string, (i: number) => OrderFilter & CertificateFilter>> = {
    'no filter': () => ({}),
    serial: (i) => ({ serial: `5e${i}` }),
    name: (i) => ({ name: nameOf(order(i)) }),
    'name suffix, few': (i) => ({ nameSuffix: nameOf(order(i)) }),
    'name suffix, a hundredth': (i) => ({ nameSuffix: `d${i % 100}.example.com` }),
    'name suffix, all': () => ({ nameSuffix: 'example.com' }),
    'product, rare': () => ({ product: 'rare' }),
    'product, most': () => ({ product: 'ssl-dv' }),
    'ends between': (i) => ({ expiresAfter: END + i * STEP_MS, expiresBefore: END + (i + 500) * STEP_MS }),
    revoked: () => ({ isRevoked: true }),
    'status revoked': () => ({ status: 'revoked' }),
    'status issued': () => ({ status: 'issued' }),
    [`${EXAMINING} suffix, product, end, status`]: (i) => ({
      ...{ nameSuffix: 'example.com', product: 'ssl-dv', status: 'issued', expiresAfter: END + i * STEP_MS },
    }),
    [`${EXAMINING} nothing found`]: () => ({ nameSuffix: 'example.com', product: 'none', isRevoked: true }),
  };
  return Object.fromEntries([
    ...Object.entries(both).flatMap(([what, filterOf]) => [
      [`orders, ${what}`, (i: number) => orders('a', filterOf(i), page)],
      [`certificates, ${what}`, (i: number) => certificates('a', filterOf(i), page)],
    ]),
    ['certificates, status pending', () => certificates('a', { status: 'pending' }, page)],
    [
      'certificates, a page in the middle',
      (i: number) => certificates('a', {}, { ...page, after: `${END + i * STEP_MS}.c${i}` }),
    ],
    [
      'orders, a page of a suffix in the middle',
      (i: number) => orders('a', { nameSuffix: 'example.com' }, { ...page, after: `o${order(Math.min(i, n))}` }),
    ],
  ]);
}

/** Whose they are, and whose signature they claim. */
const OWN = { owner: 'a', issuer: 'i' };

/** An order for each four certificates; one of fifty is revoked, one of a thousand pending, and few are of another product. */
export async function fill(db: Db, [after, to]: readonly [number, number], { owner, issuer } = OWN): Promise<void> {
  const raw = (text: string) => sql.raw(text);
  const numbers = (from: number, last: number) =>
    raw(`with recursive n (i) as (select ${from} union all select i + 1 from n where i < ${last})`);
  const [first, last] = [Math.ceil(after / VERSIONS) + 1, Math.ceil(to / VERSIONS)];
  const name = (order: string) => `'n' || (${order}) || '.d' || ((${order}) % 100) || '.example.com'`;
  const orders = numbers(first, last);
  await db.transaction().execute(async (tx) => {
    if (after === 0 && issuer === OWN.issuer) {
      await sql`insert into issuer (id, role, key_type, state, certificate, created_at)
        values ('i', 'root', 'p256', 'active', '', 0)`.execute(tx);
    }
    await sql`${orders} insert into certificate_order (id, account_id, product_id, status, common_name, names, dcv_scope,
      persist_policy, current_certificate_id, term_ends_at, created_at, revision)
      select 'o' || i, ${owner}, case when i % 5000 = 0 then 'rare' else 'ssl-dv' end,
        case when i % 50 = 0 then 'revoked' else 'issued' end, ${raw(name('i'))}, '["' || ${raw(name('i'))} || '"]', 'fqdn',
        'fqdn', 'c' || (${raw(String(VERSIONS))} * i), 0, 0, 1 from n`.execute(tx);
    for (const term of [
      name('i'),
      `'.' || ${name('i')}`,
      `'.d' || (i % 100) || '.example.com'`,
      "'.example.com'",
      "'.com'",
    ]) {
      await sql`${orders} insert into order_name (name, order_id, owner_id) select ${raw(term)}, 'o' || i, ${owner} from n`.execute(
        tx,
      );
    }
    const of = `((i + ${VERSIONS - 1}) / ${VERSIONS})`;
    const isPending = 'i % 1000 = 0';
    const issued = (value: string) => raw(`case when ${isPending} then null else ${value} end`);
    await sql`${numbers(after + 1, to)} insert into certificate (id, account_id, order_id, state, created_at, common_name,
      names, spki, key_type, key_bits, key_fingerprint, sign_hash, will_revoke, serial, not_before, not_after, prepared_at,
      lease_ends_at, issuer_id, der, issued_at, version)
      select 'c' || i, ${owner}, 'o' || ${raw(of)}, case when ${raw(isPending)} then 'pending' else 'issued' end, 0,
        ${raw(name(of))}, '["' || ${raw(name(of))} || '"]', '', 'p256', 256, 'f' || i, 'sha256', '[]', ${issued("'5e' || i")},
        0, ${issued(`${END} + i * cast(${STEP_MS} as bigint)`)}, 0, 0, ${issuer}, '', 0, ${issued(`(i - 1) % ${VERSIONS} + 1`)} from n`.execute(
      tx,
    );
    await sql`${numbers(after + 1, to)} insert into revocation (certificate_id, account_id, reason, cause, due_at, revoked_at)
      select 'c' || i, ${owner}, 'superseded', 'requested', 0, 1 from n where i % 50 = 3`.execute(tx);
  });
}
