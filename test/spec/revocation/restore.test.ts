// Restores of a backup with the CRLs that were published last: nothing that the world saw revoked is valid again, and no
// CRL number goes down. The commands' own behaviour is in test/journeys/backup.test.ts.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { readPublicKey } from '../../../src/adapters/ca/public-key.ts';
import { newFolder, startApp, TestApp } from '../../support/app.ts';
import { emptyFolderFor, knownCertificate, mirrorCrls, resealJson, revoke, worldView } from '../../support/backups.ts';
import { rule } from '../../support/contract.ts';
import { newDualOrder, newSm2Csr } from '../../support/dual.ts';
import { reseal } from '../../support/in-process.ts';
import { body, newOrder, reissue, show } from '../../support/orders.ts';
import { partsOf } from '../../support/status.ts';

const app = await startApp();
// Commands use the real clock.
app.advance(Date.now() - app.now());
after(() => app[Symbol.asyncDispose]());
const settings = { RESEAL_DATA_DIR: app.folder };

rule('revocation 19', 'revokes every serial number on them, on its CRLs and in OCSP', async () => {
  const [order, dual, revoked] = [await newOrder(app), await newDualOrder(app, await newSm2Csr()), await newOrder(app)];
  await revoke(app, revoked, 'superseded');
  const file = join(newFolder(), 'backup.db');
  await resealJson(['backup', file], settings);
  // After the backup: two revoked that it has, one that it has not, one that nobody revoked.
  await revoke(app, order, 'key_compromise');
  await revoke(app, dual, 'affiliation_changed');
  const later = await newOrder(app);
  await revoke(app, later, 'cessation_of_operation');
  const unrevoked = await newOrder(app);
  const known = await Promise.all([order, dual, revoked, later].map((one) => knownCertificate(app, one)));
  const expected = await Promise.all(known.map((one) => worldView(app, one)));
  const lost = await knownCertificate(app, unrevoked);
  await worldView(app, lost);
  const { folder, numbers } = await mirrorCrls(app);

  // The doctor tells a store that was put back.
  const rolledBack = emptyFolderFor(app);
  const doctor = async (dataDir: string) =>
    (await reseal(['doctor', '--crl', folder], { RESEAL_DATA_DIR: dataDir })).out;
  await resealJson(['restore', file, '--without-crl'], { RESEAL_DATA_DIR: rolledBack });
  assert.match(await doctor(rolledBack), /^PROBLEM {2}rollback .*: \d+ of \d+ published CRLs .* and 4 serial numbers/m);
  assert.match(await doctor(app.folder), /^ok {7}rollback /m);

  const target = emptyFolderFor(app);
  const [first = '', ...rest] = readdirSync(folder);
  const [issuerId, shard] = first.replace('.crl', '').split(/-(?=\d+$)/);
  const crls = [`${app.url}/crl/${issuerId}/${shard}.crl`, ...rest.map((name) => join(folder, name))];
  const report = await resealJson(['restore', file, ...crls.flatMap((one) => ['--crl', one])], {
    RESEAL_DATA_DIR: target,
  });
  assert.equal(report.lists.length, crls.length);
  const again = (one: { certificate_id: string; reason: string }) => `${one.certificate_id} ${one.reason}`;
  const halves = [`${dual.certificateId} affiliation_changed`, `${order.certificateId} key_compromise`];
  assert.deepEqual([...new Set(report.revoked.map(again))].sort(), halves.sort());
  const [orphan] = report.without_certificate;
  assert.deepEqual([report.without_certificate.length, orphan.serial_number], [1, known[3]?.serial]);
  assert.deepEqual([...report.missing_lists], []);

  const restored = new TestApp(target);
  restored.advance(app.now() - restored.now() + 1_000);
  await restored.start({});
  await using _restored = restored;
  for (const [index, one] of known.entries()) {
    const { number, ...seen } = await worldView(restored, one);
    const { number: before, ...was } = expected[index] ?? assert.fail();
    assert.deepEqual(seen, was);
    assert.ok(number > before, `${number} follows ${before}`);
  }
  assert.deepEqual(
    [(await worldView(restored, lost)).ocsp, (await show(restored, order)).status, (await show(restored, dual)).status],
    ['unknown', 'revoked', 'revoked'],
  );
  // What a key compromise means besides: the key is blocked for the account.
  const key = readPublicKey(partsOf(known[0]?.der ?? assert.fail()).spki);
  assert.ok(await restored.app.store.blockedKeys.has(key, order.key.accountId));
  // The restored service works: it issues and revokes, and the orphan stays on the list.
  const fresh = await newOrder(restored);
  assert.equal((await reissue(restored, fresh, body())).status, 200);
  await revoke(restored, fresh, 'superseded');
  restored.advance(25 * 3_600_000);
  await restored.issuance.crls.publishDue();
  const renewed = await worldView(restored, known[3] ?? assert.fail());
  assert.equal(renewed.listed, 'cessation_of_operation');

  const heads = await restored.app.store.crls.heads();
  for (const { issuerId, shard, number } of heads) {
    assert.ok(number > (numbers.get(`${issuerId}-${shard}`) ?? 0), `${issuerId}/${shard}`);
  }
  await restored.stop();
  // Once more: nothing is left to do.
  const repeated = await resealJson(['crl', 'import', folder], { RESEAL_DATA_DIR: target });
  assert.deepEqual([repeated.revoked, repeated.without_certificate], [[], []]);
});

rule('revocation 20', 'every CRL has a higher number than any published before it', async () => {
  // A list whose number runs ahead of the clock, as a clock that was wrong leaves it; and one that is not given.
  const other = await newOrder(app);
  await revoke(app, other, 'superseded');
  const backup = join(newFolder(), 'later.db');
  await resealJson(['backup', backup], settings);
  const ahead = 30 * 86_400_000;
  app.advance(ahead);
  await app.issuance.crls.publishDue();
  const { folder, numbers } = await mirrorCrls(app);
  app.advance(-ahead);
  const target = emptyFolderFor(app);
  await resealJson(['restore', backup, '--crl', folder], { RESEAL_DATA_DIR: target });
  const restored = new TestApp(target);
  restored.advance(app.now() - restored.now());
  await restored.start({});
  await using _restored = restored;
  const { numbers: served } = await mirrorCrls(restored);
  assert.equal(served.size, numbers.size);
  for (const [name, number] of numbers) assert.ok((served.get(name) ?? 0) > number, name);
});
