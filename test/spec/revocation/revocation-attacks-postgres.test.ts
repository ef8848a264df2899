// A key reported while the issuance of a certificate on it commits. PostgreSQL runs the two transactions concurrently: the
// issuing one has read the blocklist before the key was added, and is not committed yet.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { CertificateRef } from '../../../src/domain/revocation/ports.ts';
import type { Repositories } from '../../../src/domain/store.ts';
import { newFolder, TestApp } from '../../support/app.ts';
import { csr, newKeyPair, pem } from '../../support/csr.ts';
import { body, certificate, newOrder, reissue } from '../../support/orders.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { crlOf, derOf, ocspStatus, pems } from '../../support/status.ts';

const MAX_LOOKS = 1_000;
const postgres = await sharedPostgres();
const url = await postgres.createDatabase();
const app = new TestApp(newFolder());
await app.start({ RESEAL_DATABASE_URL: url });
const client = new pg.Client({ connectionString: url });
await client.connect();
after(async () => {
  await client.end();
  await app[Symbol.asyncDispose]();
  await postgres[Symbol.asyncDispose]();
});

/** Resolves when a transaction waits for a row lock. */
async function someoneWaits(): Promise<void> {
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    if ((await client.query(waiting)).rows.length > 0) return;
    await sleep(5);
  }
  assert.fail('no transaction waits');
}

test('a certificate whose issuance commits while its key is reported is found and revoked', async ({ mock }) => {
  const { store } = app.app;
  const { authority, revokeKey } = app.issuance;
  // One that replaces another certificate is issued in a transaction, after whose first write the key is reported.
  const order = await newOrder(app, { product: 'ssl-dv-replace' });
  const key = newKeyPair('p256');
  const fingerprint = createHash('sha256').update(key.spki).digest('hex');
  let isSigned = false;
  let reported: Promise<CertificateRef[]> | undefined;
  const { sign } = authority;
  mock.method(authority, 'sign', async (...args: Parameters<typeof sign>) => {
    isSigned = true;
    return await sign(...args);
  });
  const reporting = ({ blockedKeys, ...to }: Repositories): Repositories => ({
    ...to,
    blockedKeys: {
      ...blockedKeys,
      async has(...args) {
        const isBlocked = await blockedKeys.has(...args);
        if (isSigned && !reported) {
          reported = revokeKey(fingerprint);
          await Promise.race([reported, someoneWaits()]);
        }
        return isBlocked;
      },
    },
  });
  const { transaction } = store;
  mock.method(store, 'transaction', <T>(work: (tx: Repositories) => Promise<T>) =>
    transaction((tx) => work(reporting(tx))),
  );
  const json = body({ csr: pem(csr({ key })) }, { i_know_will_revoke_last_cert: true });
  const { status, text, body: answer } = await reissue(app, order, json);
  assert.equal(status, 200, text);
  const { id } = answer.data.certificate;
  const certificates = (await reported) ?? [];
  assert.deepEqual(
    certificates.map(({ certificateId }) => certificateId),
    [id],
  );
  const shown = await certificate(app, order, id);
  const issuer = derOf(pems(shown.ica_pem)[0]!);
  const { reason } = await ocspStatus(app, shown.serial_number, issuer);
  const list = await crlOf(app, derOf(shown.pem), issuer);
  assert.deepEqual([reason, list.revoked.get(shown.serial_number)?.reason], Array(2).fill('key_compromise'));
});
