// OCSP responses per second over HTTP, compared with an HTTP server that sends the same bytes; and the cost of a CRL: built
// from the store with 10 000 and 100 000 entries, and updated with one more. The service runs in this process, its callers
// in another.
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { placeOrders } from '../campaigns/reissues.ts';
import { type Settings, withStore, withTables } from '../campaigns/service.ts';
import { readConfig } from '../src/config/config.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import { serve } from '../src/wiring/serve.ts';
import { certIdOf, ocspRequest, partsOf, postOcsp } from '../test/support/status.ts';
import type { Bench, Print } from './bench.ts';
import { type Candidate, compare, medianOf, type Result, runConcurrently } from './comparison.ts';

const ROUNDS = { rounds: 3, roundMs: 1_000 } as const;
const LANES = 32;
const SIZES = [10_000, 100_000] as const;
const ADDED = 15;
/** The nonce is the last bytes of a request. */
const NONCE_BYTES = 32;

interface Load {
  readonly url: string;
  /** Base64; empty for a GET. */
  readonly body: string;
  readonly hasNonce: boolean;
  readonly ms: number;
}
type Outcome = { readonly count: number } | { readonly trouble: string };

export const revocations: Bench = {
  about: 'OCSP responses per second compared with bare HTTP; CRLs of 10 000 and 100 000 entries, and one more',
  async run(print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-bench-'));
    const settings = { RESEAL_DATA_DIR: folder.path, RESEAL_PORT: '0' };
    const [order] = await placeOrders(settings, 1);
    const { issuer, issuerId, serial, certificateId } = await withStore(settings, async (app) => {
      const issuance = await openIssuance(app, readConfig(settings).config, Date.now);
      const found = order && (await app.store.certificates.find(order.key.accountId, order.certificateId));
      await using _ = { [Symbol.asyncDispose]: () => issuance.close() };
      if (found?.state !== 'issued') throw new Error('the certificate was not issued');
      const [issuer] = issuance.authority.chainOf(found.preparation.issuerId);
      if (!issuer) throw new Error('the issuer has no certificate');
      const { serial } = partsOf(found.der);
      return { issuer, issuerId: found.preparation.issuerId, serial, certificateId: found.id };
    });
    await answers(settings, issuer, serial, print);
    print('');
    await lists(settings, issuerId, certificateId, print);
  },
};

async function answers(settings: Settings, issuer: Uint8Array, serial: string, print: Print): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const running = await serve(readConfig(settings).config, { now: Date.now, log: () => {} });
  stack.defer(() => running.stop());
  const certId = certIdOf(serial, issuer);
  const plain = ocspRequest([certId]);
  const { der } = await postOcsp(running, plain);
  const bare = createServer((asked, response) => {
    asked.on('end', () => response.setHeader('content-type', 'application/ocsp-response').end(der)).resume();
  }).listen(0, '127.0.0.1');
  await once(bare, 'listening');
  stack.defer(() => void bare.close());
  const callers = fork(fileURLToPath(import.meta.url), { execArgv: [] });
  stack.defer(() => void callers.kill());
  const load = (url: string, body: Uint8Array, hasNonce: boolean) => async (deadline: number) => {
    const text = Buffer.from(body).toString('base64');
    callers.send({ url, body: text, hasNonce, ms: deadline - performance.now() } satisfies Load);
    const [outcome] = (await once(callers, 'message')) as [Outcome];
    if ('trouble' in outcome) throw new Error(outcome.trouble);
    return outcome.count;
  };
  const name = 'node:http, the same bytes';
  const bareUrl = `http://127.0.0.1:${(bare.address() as AddressInfo).port}/`;
  const candidates: Candidate[] = [
    { name, run: load(bareUrl, plain, false) },
    {
      name: 'our front alone: /healthz',
      boundedBy: name,
      run: load(`${running.url}/healthz`, new Uint8Array(), false),
    },
    { name: 'OCSP without a nonce', boundedBy: name, run: load(`${running.url}/ocsp`, plain, false) },
    {
      name: 'OCSP with a nonce: a P-256 signature each',
      boundedBy: name,
      run: load(`${running.url}/ocsp`, ocspRequest([certId], randomBytes(NONCE_BYTES)), true),
    },
  ];
  for (const line of tableOf(await compare(candidates, ROUNDS))) print(line);
  print(
    `medians of ${ROUNDS.rounds} rounds of ${ROUNDS.roundMs} ms, ${LANES} at once; ${availableParallelism()} cores for both sides`,
  );
}

function tableOf(results: readonly Result[]): string[] {
  const [bound] = results as [Result];
  return results.map(({ candidate, median, slowest, fastest }) => {
    const range = `${slowest.toFixed(0)}–${fastest.toFixed(0)}`;
    const ratio = (median / bound.median).toFixed(2);
    return `${candidate.name.padEnd(44)}${median.toFixed(0).padStart(7)}/s  ${range.padStart(13)}  ${ratio}`;
  });
}

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

/** Runs in the callers' process, once per load. */
async function callService({ url, body, hasNonce, ms }: Load): Promise<Outcome> {
  const agent = new Agent({ keepAlive: true, maxSockets: LANES });
  const bytes = Buffer.from(body, 'base64');
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      // A new nonce each time, as clients send it.
      const sent = hasNonce ? Buffer.concat([bytes.subarray(0, -NONCE_BYTES), randomBytes(NONCE_BYTES)]) : bytes;
      const asked = request(url, { method: bytes.length > 0 ? 'POST' : 'GET', agent }, (response) => {
        response.on('end', () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`)),
        );
        response.resume();
      });
      asked.on('error', reject);
      asked.end(sent);
    });
  try {
    return { count: await runConcurrently(LANES, performance.now() + ms, ask) };
  } catch (error) {
    return { trouble: String(error) };
  } finally {
    agent.destroy();
  }
}

if (import.meta.main) {
  process.on('message', (load: Load) => void callService(load).then((outcome) => process.send?.(outcome)));
}
