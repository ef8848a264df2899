// A revocation becomes due while the service is killed: the next start applies it, once, and the CRL number grows, even if
// the process that would apply it is killed right away. Several processes on SQLite, two instances on PostgreSQL.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeKeys, type Service, type Settings, startService, withStore, withTables } from '../../campaigns/service.ts';
import { kill } from '../../campaigns/victims.ts';
import { readConfig } from '../../src/config/config.ts';
import { openIssuance } from '../../src/wiring/issuance.ts';
import { type Key, newFolder, newUsedFolder } from '../support/app.ts';
import { body, csrFor } from '../support/orders.ts';
import { processesOf } from '../support/processes.ts';
import { OWN_PRODUCT, productsFile } from '../support/products.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { crlOf, derOf, ocspStatus, pems } from '../support/status.ts';

const GRACE = { ...OWN_PRODUCT, csr: 'optional', revokes_previous_on_reissue: true, revocation_grace_hours: 24 };
const RESEAL_PRODUCTS_FILE = productsFile(GRACE);
const MAX_TRIES = 300;
const PAUSE_MS = 100;

const postgres = await sharedPostgres();
after(() => postgres[Symbol.asyncDispose]());

async function placed(settings: Settings): Promise<{ key: Key; orderId: string; certificateId: string }> {
  const [key] = (await makeKeys(settings, 1)) as [Key];
  return await withStore(settings, async (app) => {
    const issuance = await openIssuance(app, readConfig(settings).config, Date.now);
    const order = await issuance.placeOrder({
      ...{ accountId: key.accountId, productId: 'own', alternativeId: null, actor: 'cli', vouchesForNames: true },
      request: {
        ...{ commonName: 'www.example.com', csr: csrFor(), keySource: 'caller', signHash: 'sha256' },
        keepsEncryptionKey: false,
      },
    });
    await issuance.close();
    return { key, ...order };
  });
}

async function call({ url }: Service, key: Key, path: string, json?: unknown) {
  const response = await fetch(`${url}/openapi/v3${path}`, {
    headers: { 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey, 'Content-Type': 'application/json' },
    ...(json !== undefined && { method: 'POST', body: JSON.stringify(json) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: callers know the shape of their answers.
  return ((await response.json()) as { data: any }).data;
}

const ENVIRONMENTS: Readonly<Record<string, () => Promise<Settings[]>>> = {
  'two workers on SQLite': async () => [
    { RESEAL_DATA_DIR: await newUsedFolder(), RESEAL_PRODUCTS_FILE, RESEAL_WORKERS: '2' },
  ],
  'two instances on one PostgreSQL': async () => {
    const shared = {
      ...{ RESEAL_DATABASE_URL: await postgres.createDatabase(), RESEAL_PRODUCTS_FILE },
      RESEAL_SEAL_KEY: Buffer.alloc(32, 7).toString('base64'),
    };
    return Array.from({ length: 2 }, () => ({ RESEAL_DATA_DIR: newFolder(), ...shared }));
  },
};

for (const [name, environment] of Object.entries(ENVIRONMENTS)) {
  test(name, async () => {
    const settings = await environment();
    const { key, orderId, certificateId } = await placed(settings[0]!);
    await using stack = new AsyncDisposableStack();
    const start = async (one: Settings) => {
      const service = await startService(one);
      stack.use(service.process);
      return service;
    };
    const first = await start(settings[0]!);
    const consent = { i_know_will_revoke_last_cert: true };
    await call(first, key, `/orders/${orderId}/reissue`, body({ csr: undefined }, consent));
    const { Certificate: shown } = await call(first, key, `/certs/${certificateId}`);
    assert.deepEqual([shown.revocation.revoked_at, shown.revocation.cause], [null, 'previous_replaced']);
    const [issuer] = pems(shown.ica_pem).map(derOf) as [Buffer];
    const before = await crlOf(first, derOf(shown.pem), issuer);
    await kill(first, 'everything', '');
    // As if a day had passed.
    await withTables(settings[0]!, (db) =>
      db
        .updateTable('revocation')
        .set({ due_at: Date.now() - 1 })
        .execute(),
    );

    const services: Service[] = [];
    for (const one of settings) services.push(await start(one));
    const [background] = processesOf(services[0]!.process).filter(({ name }) => name === 'background');
    if (background) process.kill(background.pid, 'SIGKILL');
    let revocation = shown.revocation;
    for (let tries = 0; revocation.crl_number === null && tries < MAX_TRIES; tries += 1) {
      await sleep(PAUSE_MS);
      revocation = (await call(services[0]!, key, `/certs/${certificateId}`)).Certificate.revocation;
    }
    assert.ok(revocation.revoked_at, 'it was revoked');
    for (const service of services) {
      const list = await crlOf(service, derOf(shown.pem), issuer);
      assert.ok(list.revoked.has(shown.serial_number) && list.number > before.number);
      assert.equal((await ocspStatus(service, shown.serial_number, issuer)).status, 'revoked');
    }
    const times = await withTables(settings[0]!, async (db) => {
      const events = await db.selectFrom('outbox').select('id').where('action', '=', 'order:revoked').execute();
      const audit = await db.selectFrom('audit').select('id').where('action', '=', 'certificate:revoked').execute();
      return [events.length, audit.length];
    });
    assert.deepEqual(times, [1, 1], 'once');
    for (const { process } of services) await process.end('SIGTERM');
  });
}
