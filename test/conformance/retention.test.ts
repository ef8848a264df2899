// Retention on both engines: what is deleted, what is not, in batches; and that no table was forgotten.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { randomBytes } from '../../src/adapters/seal/random.ts';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { engineAt, openStore } from '../../src/adapters/store/store.ts';
import { readConfig } from '../../src/config/config.ts';
import { CEREMONY_ACTIONS } from '../../src/domain/access/ports.ts';
import { firstIdAt, idMaker } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../src/kernel/durations.ts';
import type { LogLine } from '../../src/kernel/log.ts';
import { prune, RETENTION } from '../../src/usecases/support/prune.ts';
import { retentionChores } from '../../src/wiring/retention.ts';
import { bothEngines } from '../support/engines.ts';
import { certificate, order } from '../support/records.ts';

const NOW = Date.UTC(2026, 10, 15);

test('the default keeps audit rows for more than two years', () => {
  assert.ok(readConfig({}).config.retention.auditMs >= 2 * 366 * DAY_MS);
  assert.ok(readConfig({ RESEAL_IDEMPOTENCY_RETENTION_DAYS: '1' }).config.retention.idempotencyMs >= DAY_MS);
});

for (const engine of await bothEngines()) {
  describe(engine.name, () => {
    test('docs/operations.md says of every table whether it grows', async () => {
      const location = await engine.newLocation();
      await (await openStore(location, sealerWith([newSealKey()]), () => NOW)).close();
      const db = openEngine(engineAt(location), () => {});
      const tables = (await db.introspection.getTables()).map(({ name }) => name);
      await db.destroy();
      const text = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
      const [, section = ''] = text.split('## What grows');
      const rows = section.split('\n').filter((line) => line.startsWith('| `'));
      const listed = rows.flatMap((row) =>
        [...(row.split('|')[1] ?? '').matchAll(/`([a-z_]+)`/g)].map(([, name]) => name),
      );
      assert.deepEqual([...listed].sort(), [...tables].sort());
    });

    test('what has outlived its purpose is deleted in batches, and nothing else', async () => {
      await using store = await openedStore(engine);
      const { audit, accounts, orders, certificates, idempotencyKeys, placementKeys, rateLimits } = store;
      await accounts.insert({ id: 'a', name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW });
      await orders.insert(order('o'));
      await certificates.insert(certificate('c'));
      const newId = idMaker(() => NOW - 1, randomBytes);
      const row = { at: 0, actor: 'service', subject: 's', requestId: null, details: {} } as const;
      await store.transaction(async (tx) => {
        for (let count = 0; count < 1_200; count += 1) {
          await tx.audit.append({ ...row, id: newId(), accountId: 'a', action: 'order:placed' });
        }
      });
      for (const action of CEREMONY_ACTIONS) await audit.append({ ...row, id: newId(), accountId: null, action });
      await audit.append({ ...row, id: firstIdAt(NOW), accountId: 'a', action: 'order:placed' });
      assert.equal(await prune(store, RETENTION.audit, NOW), 1_200);
      assert.equal(await prune(store, RETENTION.audit, NOW), 0);
      const left = await audit.search({}, { limit: 100 });
      assert.deepEqual(
        left.entries.map(({ action }) => action),
        ['order:placed', ...[...CEREMONY_ACTIONS].reverse()],
      );

      const answer = { requestHash: 'h', certificateId: 'c' };
      await idempotencyKeys.put('a', 'o', 'old', { ...answer, at: NOW - 1 });
      await idempotencyKeys.put('a', 'o', 'new', { ...answer, at: NOW });
      assert.equal(await prune(store, RETENTION.idempotency, NOW), 1);
      assert.equal(await idempotencyKeys.find('a', 'o', 'old', 0), undefined);
      assert.ok(await idempotencyKeys.find('a', 'o', 'new', 0));

      for (const [key, at] of [
        ['old', NOW - 1],
        ['new', NOW],
      ] as const) {
        await placementKeys.take('a', key, { ...answer, orderId: 'o', at }, 0);
      }
      assert.equal(await prune(store, RETENTION.placements, NOW), 1);
      assert.equal(await placementKeys.find('a', 'old', 0), undefined);
      assert.ok(await placementKeys.find('a', 'new', 0));

      const rate = { burst: 1, everyMs: 1_000 };
      await rateLimits.take('old', rate, NOW - 2_000);
      await rateLimits.take('new', rate, NOW);
      assert.equal(await prune(store, RETENTION.rateLimits, NOW), 1);
      assert.ok((await rateLimits.take('new', rate, NOW)) > 0, 'a limit that is in force stays');
    });

    test('a run stops when the service does', async () => {
      await using store = await openedStore(engine);
      assert.equal(
        await prune(store, { table: 't', remove: async (_, __, limit) => limit }, NOW, AbortSignal.abort()),
        0,
      );
      assert.equal(await prune(store, { table: 't', remove: async (_, __, limit) => limit }, NOW), 50_000, 'bounded');
    });
  });
}

test('chores keep what the settings say, and log what they delete', async () => {
  const [sqlite] = await bothEngines();
  await using store = await openedStore(sqlite!);
  const lines: LogLine[] = [];
  const { config } = readConfig({ RESEAL_AUDIT_RETENTION_DAYS: '10' });
  const newId = idMaker(() => NOW - 10 * DAY_MS - 1, randomBytes);
  await store.audit.append({
    ...{ id: newId(), at: 0, accountId: null, actor: 'service', action: 'order:placed', subject: 's' },
    ...{ requestId: null, details: {} },
  });
  await store.rateLimits.take('kept for an hour', { burst: 1, everyMs: 1 }, NOW - HOUR_MS);
  const app = { store, now: () => NOW, log: (line: LogLine) => void lines.push(line) };
  const chores = retentionChores(app, config);
  assert.deepEqual(
    chores.map(({ name }) => name).sort(),
    Object.values(RETENTION)
      .map(({ table }) => `prune_${table}`)
      .sort(),
  );
  for (const { run } of chores) await run();
  assert.deepEqual(lines, [{ event: 'pruned', table: 'audit', rows: 1 }]);
});

async function openedStore(engine: Awaited<ReturnType<typeof bothEngines>>[number]) {
  const store = await openStore(await engine.newLocation(), sealerWith([newSealKey()]), () => NOW);
  return { ...store, [Symbol.asyncDispose]: () => store.close() };
}
