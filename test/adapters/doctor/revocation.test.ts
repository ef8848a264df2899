// The doctor's revocation check: ok while the service runs; expired CRLs, overdue and unlisted revocations otherwise.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRevocation } from '../../../src/adapters/doctor/revocation.ts';
import { openEngine } from '../../../src/adapters/store/engine/engine.ts';
import { engineAt } from '../../../src/adapters/store/store.ts';
import { startApp } from '../../support/app.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const GRACE = { ...OWN_PRODUCT, csr: 'optional', revokes_previous_on_reissue: true, revocation_grace_hours: 12 };

test('expired CRLs, overdue or unlisted revocations, and stale CRLs', async () => {
  const app = await startApp({ RESEAL_PRODUCTS_FILE: productsFile(GRACE) });
  const db = openEngine(engineAt({ kind: 'sqlite', file: `${app.folder}/reseal.db` }), () => {});
  const found = async (at: number) => {
    const { state, text } = await checkRevocation(db, at);
    return `${state}: ${text}`;
  };
  try {
    assert.equal(await found(app.now()), 'ok: no CRLs yet');
    const order = await newOrder(app);
    await app.call('POST', `/openapi/v3/certs/${order.certificateId}/revoke`, { key: order.key });
    const at = app.now();
    assert.equal(await found(at), 'ok: 1 CRLs are current');
    assert.match(await found(at + DAY + 2 * HOUR), /^warning: 1 of 1 CRLs were not renewed/);
    assert.match(await found(at + 7 * DAY), /^problem: 1 of 1 CRLs have expired/);
    const graceful = await newOrder(app, { product: 'own' });
    await reissue(app, graceful, body({ csr: undefined }, { i_know_will_revoke_last_cert: true }));
    assert.match(await found(at + 11 * HOUR), /^ok/);
    assert.match(await found(at + 12 * HOUR + 61_000), /^problem: a scheduled revocation is overdue/);
    await db.updateTable('revoked_serial').set({ listed_in: null }).execute();
    assert.match(await found(at), /^warning: a revocation is not on a CRL yet/);
  } finally {
    await db.destroy();
    await app.stop();
  }
});
