// What a signer leaves when it dies between writing a certificate down and finishing it: a lease on its order.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { AccountId, CertificateId, OrderId } from '../../src/domain/ids.ts';
import { SIGNING_LEASE_MS } from '../../src/domain/issuance/ports.ts';
import type { Store } from '../../src/domain/store.ts';
import { issuedIn } from './records.ts';
import { HOLDS } from './signings.ts';

interface Dying {
  readonly accountId: AccountId;
  readonly orderId: OrderId;
  /** An issued certificate of the order, whose contents are signed again. */
  readonly like: CertificateId;
  readonly id: CertificateId;
}

/** `now` is the clock of the signer. */
export async function dieSigning(store: Store, { accountId, orderId, like, id }: Dying, now: number) {
  const { der: _, issuedAt, version, replacesId, revocation, ...model } = await issuedIn(store, accountId, like);
  const serial = randomBytes(16).toString('hex');
  const preparation = { ...model.preparation, serial, leaseEndsAt: now + SIGNING_LEASE_MS };
  const record = {
    ...model,
    id,
    preparation,
    state: 'prepared',
    toBeSigned: Buffer.from('x'),
    encryption: null,
  } as const;
  const { revision } = (await store.orders.find(accountId, orderId)) ?? assert.fail(orderId);
  assert.ok(await store.signings.begin(record, { ...HOLDS, revision }));
}
