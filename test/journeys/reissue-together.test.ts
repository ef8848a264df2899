// Concurrent reissues of one order: in one process on SQLite, and spread over two processes on one PostgreSQL. The order
// ends with one chain of certificates and no leftovers. TOGETHER=200 raises their number.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { faultsIn, readTables } from '../../campaigns/reissue-kill.ts';
import { placeOrders, type ReissueAnswer, ReissueClient } from '../../campaigns/reissues.ts';
import { type Service, type Settings, startService, withTables } from '../../campaigns/service.ts';
import { newFolder, newUsedFolder } from '../support/app.ts';
import { body, type PlacedOrder } from '../support/orders.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

const TOGETHER = Number(process.env.TOGETHER ?? 60);
const WITH_ONE_KEY = 20;
const NEW_NAME = { dns_names: ['www.example.com', 'new.example.com'] };

const postgres = await sharedPostgres();
after(() => postgres[Symbol.asyncDispose]());

const ENVIRONMENTS: Readonly<Record<string, () => Promise<Settings[]>>> = {
  'one process on SQLite': async () => [{ RESEAL_DATA_DIR: await newUsedFolder() }],
  'two processes on one PostgreSQL': async () => {
    const shared = {
      RESEAL_DATABASE_URL: await postgres.createDatabase(),
      RESEAL_SEAL_KEY: Buffer.alloc(32, 7).toString('base64'),
    };
    return [newFolder(), newFolder()].map((folder) => ({ RESEAL_DATA_DIR: folder, ...shared }));
  },
};

for (const [name, environment] of Object.entries(ENVIRONMENTS)) {
  describe(name, async () => {
    const settings = await environment();
    const orders = await placeOrders(settings[0]!, 3);
    const services: Service[] = [];
    for (const one of settings) services.push(await startService(one));
    after(async () => {
      for (const { process } of services) await process.end('SIGTERM');
    });
    const together = async (count: number, order: PlacedOrder, json: string, key?: string) => {
      using client = new ReissueClient(count);
      const call = (index: number) => client.reissue(services[index % services.length]!.url, order, json, key);
      return (await Promise.all(Array.from({ length: count }, (_, index) => call(index)))) as ReissueAnswer[];
    };
    /** Every row of the order, after checking the invariants of each. */
    const rowsOf = async ({ id }: PlacedOrder) => {
      const tables = await withTables(settings[0]!, readTables);
      assert.deepEqual(faultsIn(tables), []);
      const certificates = tables.certificates.filter(({ order_id }) => order_id === id);
      const order = tables.orders.find((one) => one.id === id)!;
      return { certificates, order, signings: tables.signings.filter(({ order_id }) => order_id === id) };
    };
    const idsOf = (answers: readonly ReissueAnswer[]): string[] =>
      answers.filter(({ status }) => status === 200).map((answer) => answer.body.data.certificate.id);
    const statusesOf = (answers: readonly ReissueAnswer[]) =>
      answers.map((answer) => (answer ? `${answer.status} ${answer.body.code}` : 'silence'));

    test(`${TOGETHER} reissues with validated names make ${TOGETHER} certificates in one chain`, async () => {
      const order = orders[0]!;
      const answers = await together(TOGETHER, order, JSON.stringify(body()));
      assert.deepEqual(new Set(statusesOf(answers)), new Set(['200 success']));
      const ids = new Set(idsOf(answers));
      assert.equal(ids.size, TOGETHER, 'every reissue has its own certificate');
      const { certificates, order: row, signings } = await rowsOf(order);
      assert.deepEqual(new Set(certificates.map(({ id }) => id)), new Set([...ids, order.certificateId]));
      assert.deepEqual(new Set(certificates.map(({ state }) => state)), new Set(['issued']));
      assert.equal(Math.max(...certificates.map(({ version }) => version ?? 0)), TOGETHER + 1);
      assert.deepEqual([row.status, signings], ['issued', []]);
    });

    test('of as many with an unvalidated name one becomes pending, and the others are told which', async () => {
      const order = orders[1]!;
      const answers = await together(TOGETHER, order, JSON.stringify(body(NEW_NAME)));
      const [pending, ...more] = idsOf(answers);
      assert.deepEqual(more, []);
      const refused = answers.filter(({ status }) => status !== 200);
      assert.deepEqual(new Set(statusesOf(refused)), new Set(['409 reissue_in_progress']));
      assert.deepEqual(new Set(refused.map((answer) => answer.body.details.certificate_id)), new Set([pending]));
      const { certificates, order: row, signings } = await rowsOf(order);
      assert.deepEqual(
        new Map(certificates.map(({ id, state }) => [id, state])),
        new Map([
          [order.certificateId, 'issued'],
          [pending, 'pending'],
        ]),
      );
      assert.deepEqual([row.status, row.pending_certificate_id, signings], ['reissuing', pending, []]);
      assert.equal(row.current_certificate_id, order.certificateId);
    });

    test(`${WITH_ONE_KEY} with the same Idempotency-Key make one certificate`, async () => {
      const order = orders[2]!;
      const answers = await together(WITH_ONE_KEY, order, JSON.stringify(body()), 'one-key');
      assert.deepEqual(new Set(statusesOf(answers)), new Set(['200 success']));
      const ids = new Set(idsOf(answers));
      const { certificates } = await rowsOf(order);
      assert.deepEqual([ids.size, certificates.length], [1, 2]);
      assert.equal(new Set(answers.map((answer) => JSON.stringify(answer.body))).size, 1);
    });
  });
}
