// Connections for validation files: how many lead to one address, and whose they are.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Key } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { FILE, page, startDomainApp } from '../../support/domain-app.ts';
import type { PlacedOrder } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, dns, files, place, complete, entries, outcome, newDomain } = world;

/** Fetches that have arrived and are held back, by account. */
const held = new Map<string, number>();
const total = () => [...held.values()].reduce((sum, count) => sum + count, 0);
let released = Promise.withResolvers<void>();

/** An order whose names all lead to one address, which holds its answers back. */
async function orderOf(key: Key, count: number): Promise<PlacedOrder> {
  const order = await place(Array.from({ length: count }, newDomain), { dcv_method: 'file' }, { key });
  for (const { domain, auth_val } of await entries(order)) {
    dns.set(domain, 'A', ['127.0.0.1']);
    files.set(domain + FILE, async (socket) => {
      held.set(key.accountId, (held.get(key.accountId) ?? 0) + 1);
      await released.promise;
      socket.end(page(auth_val));
    });
  }
  return order;
}

/** Until no more arrive: everything here is one process, so what may arrive does so within some turns. */
async function settled(): Promise<void> {
  for (let [quiet, before] = [0, -1]; quiet < 200; quiet += 1, before = total()) {
    if (total() !== before) quiet = 0;
    await setImmediate();
  }
}

async function whileHeld(orders: readonly PlacedOrder[], check: () => void): Promise<void> {
  held.clear();
  released = Promise.withResolvers();
  const completing = orders.map(complete);
  while (total() === 0) await setImmediate();
  await settled();
  try {
    check();
  } finally {
    released.resolve();
  }
  await Promise.all(completing);
  for (const order of orders) assert.equal(await outcome(order), 'issued');
}

rule('quota 9', 'at most eight validation files at a time, four of them for one account', async () => {
  const [one, two, three] = [await app.newKey(), await app.newKey(), await app.newKey()];
  // Several orders of one account, as many names as are checked at once.
  const alone = [await orderOf(one, 8), await orderOf(one, 8), await orderOf(one, 8)];
  await whileHeld(alone, () => assert.equal(total(), 4));
  const together = [
    ...(await Promise.all([orderOf(one, 8), orderOf(two, 8), orderOf(three, 8)])),
    await orderOf(one, 8),
  ];
  await whileHeld(together, () => {
    assert.ok(total() > 4 && total() <= 8, String(total()));
    for (const count of held.values()) assert.ok(count >= 1 && count <= 4);
    assert.equal(held.size, 3);
  });
});
