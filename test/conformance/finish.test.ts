// The second write of an issuance, on every engine: it records everything or nothing, whatever of it fails, and whatever
// else is written at the same time.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { OpenStore } from '../../src/adapters/store/store.ts';
import { callbackBody } from '../../src/domain/callbacks/callback.ts';
import type { FinishedIssuance, Signings } from '../../src/domain/issuance/ports.ts';
import { Secret } from '../../src/domain/secret.ts';
import { rsaSpki } from '../support/csr.ts';
import { bothEngines } from '../support/engines.ts';
import { dump, storeTests } from '../support/order-store.ts';
import { certificate, EVERY_BYTE, issued, NOW, ODD, order, preparation, prepared } from '../support/records.ts';
import { finished, HOLDS, half, signed } from '../support/signings.ts';

const escrow = ({ escrowedKeys }: OpenStore) => {
  const { publicKey } = certificate('any');
  return escrowedKeys.insert({
    ...{ id: 'e', accountId: 'a', orderId: 'o', publicKey, privateKey: EVERY_BYTE, createdAt: NOW },
  });
};
const subscribe = ({ callbacks }: OpenStore, accountId: string) =>
  callbacks.save({
    ...{ accountId, url: 'https://hooks.example.com', accessKey: new Secret('k'), signingSecret: new Secret('s') },
    ...{ former: null, isDisabled: false, enabledActions: null, updatedAt: NOW },
  });

const RECORD = prepared('c1', { commonName: ODD, names: [ODD, 'x'], csr: ODD, validityDays: 7 });
const IDEMPOTENCY = { key: ODD, requestHash: 'h' };
const ISSUED = finished(RECORD, { idempotency: IDEMPOTENCY });
const ALWAYS = { evenIfReported: true };
const UNLESS_REPORTED = { evenIfReported: false };

interface Finishing {
  /** What happens between begin and finish. */
  given?(store: OpenStore): Promise<unknown>;
  readonly issuance?: FinishedIssuance;
}

/** Refused whether the key was reported or not. */
const REFUSED: Readonly<Record<string, Finishing>> = {
  'the lease was voided': { given: ({ signings }) => signings.void('o', 'v1') },
  'the lease was voided, and another certificate has it': {
    async given({ signings }) {
      await signings.void('o', 'v1');
      assert.ok(await signings.begin(prepared('c2'), HOLDS));
    },
  },
  'another certificate has the lease': { issuance: finished(prepared('c2')) },
  'the order has changed': { given: ({ orders }) => orders.save(order('o')) },
  'the order is as it will be': { issuance: { ...ISSUED, order: order('o', { revision: 2 }) } },
  'it is of another account': { issuance: finished({ ...RECORD, accountId: 'b' }) },
  'it is of another order': { issuance: finished({ ...RECORD, orderId: 'q' }) },
  'it was finished before': { given: ({ signings }) => signings.finish(finished(RECORD), ALWAYS) },
};

const REPORTED: Readonly<Record<string, (store: OpenStore) => Promise<unknown>>> = {
  'its key was reported while it was being signed': ({ signings }) => signings.reportKey('f', null),
  'its key is blocked for all': ({ blockedKeys }) => blockedKeys.add('f', '', NOW),
  'its account has reported its key': ({ blockedKeys }) => blockedKeys.report('a', 'f', NOW),
};

const other = { version: 9, preparation: preparation('another') };
const dual = signed({ ...RECORD, encryption: half('half') });
/** One statement in the middle fails. */
const FAILING: Readonly<Record<string, Finishing>> = {
  'the certificate exists': { given: ({ certificates }) => certificates.insert(issued('c1', other)) },
  'its version exists': { given: ({ certificates }) => certificates.insert(issued('c9', { ...other, version: 1 })) },
  'its half exists': {
    async given(store) {
      await escrow(store);
      await store.certificates.insert(issued('c9', { ...other, encryption: dual.encryption }));
    },
    issuance: { ...ISSUED, certificate: dual },
  },
  'its audit row exists': { given: ({ audit }) => audit.append(ISSUED.audit) },
  'its event exists': {
    async given({ certificates, outbox }) {
      await certificates.insert(issued('c9', other));
      await outbox.add({ ...ISSUED.event, certificateId: 'c9' });
    },
  },
};

type Finish = (store: OpenStore, ...args: Parameters<Signings['finish']>) => Promise<boolean>;
const WAYS: Readonly<Record<string, Finish>> = {
  alone: ({ signings }, ...args) => signings.finish(...args),
  'in a transaction': (store, ...args) => store.transaction((tx) => tx.signings.finish(...args)),
};

for (const engine of await bothEngines()) {
  const testStore = storeTests(engine);
  describe(engine.name, () => {
    for (const [way, finish] of Object.entries(WAYS)) {
      testStore(
        `order, certificate, event, audit row and idempotency key are recorded, ${way}`,
        async (store, rows) => {
          const { certificates, orders, signings, audit, idempotencyKeys } = store;
          await orders.insert(order('other'));
          await certificates.insert(issued('c0', { version: 2 }));
          await signings.begin(RECORD, HOLDS);
          await signings.begin(prepared('c2', { orderId: 'other' }), HOLDS);
          const changed = order('o', { status: 'issued', currentCertificateId: 'c1', commonName: ODD, names: [ODD] });
          const record = signed(RECORD, { version: 3, replacesId: 'c0' });
          assert.equal(await finish(store, { ...ISSUED, order: changed, certificate: record }, UNLESS_REPORTED), true);
          assert.deepEqual(await certificates.find('a', 'c1'), record);
          assert.deepEqual(await orders.findForUpdate('a', 'o'), { order: { ...changed, revision: 2 }, signing: null });
          assert.deepEqual(await audit.listOf('a', { limit: 9 }), [ISSUED.audit]);
          assert.deepEqual(await idempotencyKeys.find('a', 'o', ODD, NOW), { requestHash: 'h', certificateId: 'c1' });
          assert.deepEqual(await rows('select id, certificate_id, state, reason, settled_at from outbox'), [
            {
              ...{ id: ISSUED.event.id, certificate_id: 'c1', state: 'suppressed', reason: 'not_configured' },
              settled_at: NOW + 5,
            },
          ]);
          assert.deepEqual(await rows("select to_be_signed from certificate where id = 'c1'"), [
            { to_be_signed: null },
          ]);
          const { signing } = (await orders.findForUpdate('a', 'other'))!;
          assert.equal(signing?.certificateId, 'c2', 'another order is not affected');
        },
      );

      testStore(`a certificate that waited, with its half, is recorded under its id, ${way}`, async (store) => {
        const { certificates, signings } = store;
        await escrow(store);
        const waits = { pendingSince: NOW - 9, csr: ODD, validityDays: 7, customExpirationDate: '2027-01-01' };
        await certificates.insert(certificate('c1', waits));
        const publicKey = {
          type: 'rsa',
          bits: 2048,
          spki: Buffer.from(rsaSpki(1n << 2047n)),
          fingerprint: 'made',
        } as const;
        const record = prepared('c1', { ...waits, publicKey, encryption: half('serial of the half') });
        await signings.begin(record, HOLDS);
        assert.equal(await finish(store, finished(record), ALWAYS), true);
        assert.deepEqual(await certificates.find('a', 'c1'), signed(record));
      });
    }

    /** With the order q of a. `attempt` must leave everything as it was. */
    const testNothing = (
      name: string,
      { given, issuance = ISSUED }: Finishing,
      attempt: (finish: () => Promise<boolean>, way: string) => Promise<unknown>,
      options = [ALWAYS, UNLESS_REPORTED],
    ) =>
      testStore(name, async (store, rows) => {
        await store.orders.insert(order('q'));
        assert.ok(await store.signings.begin(RECORD, HOLDS));
        await given?.(store);
        const before = await dump(engine, rows);
        for (const [way, finish] of Object.entries(WAYS)) {
          for (const option of options) await attempt(() => finish(store, issuance, option), way);
          assert.deepEqual(await dump(engine, rows), before, way);
        }
      });

    for (const [what, finishing] of Object.entries(REFUSED)) {
      testNothing(`nothing is recorded: ${what}`, finishing, async (finish, way) => {
        assert.equal(await finish(), false, way);
      });
    }
    for (const [what, finishing] of Object.entries(FAILING)) {
      testNothing(`nothing is recorded, because ${what}`, finishing, async (finish, way) => {
        await assert.rejects(finish(), way);
      });
    }
    for (const [what, given] of Object.entries(REPORTED)) {
      const refuse = async (finish: () => Promise<boolean>, way: string) => assert.equal(await finish(), false, way);
      testNothing(`nothing is recorded: ${what}`, { given }, refuse, [UNLESS_REPORTED]);

      testStore(`recorded where that is what is wanted: ${what}`, async (store) => {
        await store.signings.begin(RECORD, HOLDS);
        await given(store);
        assert.equal(await store.signings.finish(ISSUED, ALWAYS), true);
        assert.deepEqual(await store.certificates.find('a', 'c1'), ISSUED.certificate);
      });
    }

    testStore('a key that another account has reported is certified', async ({ signings, blockedKeys }) => {
      await signings.begin(RECORD, HOLDS);
      await blockedKeys.report('b', 'f', NOW);
      assert.equal(await signings.finish(ISSUED, UNLESS_REPORTED), true);
    });

    testStore(
      'an idempotency key that has expired is replaced',
      async ({ certificates, idempotencyKeys, signings }) => {
        await certificates.insert(certificate('c0'));
        for (const key of [ODD, 'another']) {
          await idempotencyKeys.put('a', 'o', key, { requestHash: 'old', certificateId: 'c0', at: NOW });
        }
        await signings.begin(RECORD, HOLDS);
        await signings.finish(ISSUED, UNLESS_REPORTED);
        const found = (key: string, since: number) => idempotencyKeys.find('a', 'o', key, since);
        assert.deepEqual(await found(ODD, NOW + 4), { requestHash: 'h', certificateId: 'c1' });
        assert.deepEqual(await found('another', 0), { requestHash: 'old', certificateId: 'c0' });
        assert.equal(await found('another', NOW), undefined);
      },
    );

    testStore(
      'an event is to be sent where there are settings, in the language of the account',
      async (store, rows) => {
        const account = { name: 'Name', kind: 'standard', locale: 'zh-CN', createdAt: NOW } as const;
        await store.accounts.insert({ id: 'z', ...account });
        const notified: boolean[] = [];
        store.onEventsCommitted(() => notified.push(true));
        for (const accountId of ['a', 'z', 'b']) {
          if (accountId !== 'b') await subscribe(store, accountId);
          const orderId = `o of ${accountId}`;
          await store.orders.insert(order(orderId, { accountId }));
          const record = prepared(`c of ${accountId}`, { accountId, orderId });
          await store.signings.begin(record, HOLDS);
          assert.equal(await store.signings.finish(finished(record), UNLESS_REPORTED), true);
          assert.equal(await store.signings.finish(finished(record), UNLESS_REPORTED), false);
        }
        const about = (accountId: string) => ({
          ...{ orderId: `o of ${accountId}`, certificateId: `c of ${accountId}`, orderStatus: 'issued' as const },
        });
        const bodyOf = (accountId: string, locale: 'en' | 'zh-CN') =>
          JSON.stringify(callbackBody('order:issued', about(accountId), locale));
        const columns = 'account_id, state, reason, body, cast(is_new as text) as is_new, due_at';
        const sent = { state: 'pending', reason: null, is_new: '1', due_at: 0 };
        assert.deepEqual(await rows(`select ${columns} from outbox order by account_id`), [
          { ...sent, account_id: 'a', body: bodyOf('a', 'en') },
          {
            ...sent,
            account_id: 'b',
            body: bodyOf('b', 'en'),
            state: 'suppressed',
            reason: 'not_configured',
            is_new: '0',
          },
          { ...sent, account_id: 'z', body: bodyOf('z', 'zh-CN') },
        ]);
        assert.deepEqual(notified, [true, true], 'the dispatcher is told of those that are to be sent');
      },
    );

    testStore(
      'one that fails, and one that is refused, fail alone among those that are written with them',
      async (store, rows) => {
        const { orders, signings, certificates } = store;
        const records = Array.from({ length: 12 }, (_, index) =>
          prepared(`c${index}`, { orderId: `o${index}`, preparation: preparation(`serial ${index}`) }),
        );
        for (const record of records) {
          await orders.insert(order(record.orderId));
          assert.ok(await signings.begin(record, HOLDS));
        }
        await certificates.insert(issued('taken', { orderId: 'o5', version: 1, preparation: preparation('taken') }));
        await orders.save(order('o7'));
        const results = await Promise.allSettled(
          records.map((record) => signings.finish(finished(record), UNLESS_REPORTED)),
        );
        const outcomes = results.map((result) => (result.status === 'rejected' ? 'failed' : result.value));
        assert.deepEqual(
          outcomes,
          records.map((_, index) => (index === 5 ? 'failed' : index !== 7)),
        );
        const ids = async (text: string) => (await rows(text)).flatMap(Object.values).sort();
        const done = records.map(({ id }) => id).filter((id) => id !== 'c5' && id !== 'c7');
        assert.deepEqual(await ids("select id from certificate where id <> 'taken'"), done.sort());
        assert.deepEqual(await ids('select certificate_id from outbox'), done.sort());
        assert.deepEqual(await ids('select certificate_id from signing'), ['c5', 'c7']);
      },
    );
  });
}
