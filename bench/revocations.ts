// OCSP answers compared with an HTTP server that sends the same bytes; and the cost of a CRL: built from the store with
// 10 000 and 100 000 entries, and updated with one more.
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { type Settings, withStore, withTables } from '../campaigns/service.ts';
import { readConfig } from '../src/config/config.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import type { Bench, Print } from './bench.ts';
import { medianOf } from './comparison.ts';
import { issueOne, measureOcsp } from './ocsp.ts';

const SIZES = [10_000, 100_000] as const;
const ADDED = 15;

export const revocations: Bench = {
  about: 'OCSP compared with bare HTTP, as ratios with their aims; CRLs of 10 000 and 100 000 entries, and one more',
  async run(print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
    const settings = { RESEAL_DATA_DIR: folder.path };
    const asked = await issueOne(settings);
    await measureOcsp(settings, asked, print);
    print('');
    await lists(settings, asked.issuerId, asked.certificateId, print);
  },
};

async function lists(settings: Settings, issuerId: string, certificateId: string, print: Print): Promise<void> {
  const durations: number[] = [];
  for (const [index, size] of SIZES.entries()) {
    const shard = index + 1;
    await fill(settings, { issuerId, shard, certificateId, size });
    await withStore(settings, async (app) => {
      const issuance = await openIssuance(app, readConfig(settings).config, Date.now);
      const publish = async () => {
        const begun = performance.now();
        await issuance.crls.publish([{ issuerId, shard }]);
        return performance.now() - begun;
      };
      const anew = await publish();
      const added: number[] = [];
      for (let count = 0; count < ADDED; count += 1) {
        await app.store.revokedSerials.insert({
          ...{ issuerId, shard, serial: `42${count.toString(16).padStart(28, '0')}0${shard}`, certificateId },
          ...{ reason: 'superseded', revokedAt: Date.now(), notAfter: Date.now() + 1e10 },
        });
        added.push(await publish());
      }
      const list = await app.store.crls.find({ issuerId, shard });
      if (list?.entries !== size + ADDED) throw new Error(`the CRL has ${list?.entries} entries`);
      const one = medianOf(added.toSorted((a, b) => a - b));
      const each = ((anew * 1000) / size).toFixed(2);
      durations.push(anew);
      print(
        `${size} revocations: built from the store in ${anew.toFixed(0)} ms (${each} µs each), one more in ${one.toFixed(1)} ms; ${(list.der.length / 1e6).toFixed(2)} MB`,
      );
      await issuance.close();
    });
  }
  const [small = 0, large = 0] = durations;
  print(`ten times the revocations take ${(large / small).toFixed(1)} times as long; an issuer has 16 such CRLs`);
}

interface Fill {
  readonly issuerId: string;
  readonly shard: number;
  readonly certificateId: string;
  readonly size: number;
}

/** Writes revocations as if they had long been listed: the next CRL is built from the store. */
const fill = (settings: Settings, { issuerId, shard, certificateId, size }: Fill) =>
  withTables(settings, async (db) => {
    const end = Date.now() + 1e10;
    await sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${size})
      insert into revoked_serial (issuer_id, shard, serial, certificate_id, reason, revoked_at, not_after, listed_in,
        crl_number, crl_published_at)
      select ${issuerId}, ${shard}, printf('41%028x0%d', i, ${shard}), ${certificateId}, 'superseded', ${Date.now()}, ${end},
        1, 1, 1 from n`.execute(db);
    await sql`insert into crl values (${issuerId}, ${shard}, 1, 1, 1, ${size}, 0, '', '')`.execute(db);
  });
