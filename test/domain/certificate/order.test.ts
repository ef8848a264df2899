import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  afterLostSigner,
  CERTIFICATE_STATES,
  type CertificateRecord,
  FIRST_STATUSES,
  ORDER_STATUSES,
  requireTransition,
  TRANSITIONS,
} from '../../../src/domain/certificate/order.ts';
import { Refusal } from '../../../src/domain/errors.ts';

/** The table of the decision record, row by row: from, to. */
function recordedTransitions(): Map<string, string[]> {
  const record = new URL('../../../docs/adr/0007-orders-certificates-and-ids.md', import.meta.url);
  const rows = readFileSync(record, 'utf8')
    .split('\n')
    .filter((line) => /^\| [`(]/.test(line));
  const wordsOf = (cell: string): string[] =>
    [...cell.matchAll(/`([a-z_]+)`|\((placed)\)/g)].map(([, a, b]) => a ?? b ?? '');
  return new Map(
    rows.flatMap((row) => {
      const [, from = '', to = ''] = row.split('|');
      return wordsOf(from).map((word) => [word, wordsOf(to)] as const);
    }),
  );
}

test('the transitions are those of the decision record, and every pair is tried', () => {
  const recorded = recordedTransitions();
  assert.deepEqual(recorded.get('placed'), [...FIRST_STATUSES]);
  assert.deepEqual([...recorded.keys()].sort(), ['placed', ...ORDER_STATUSES].sort());
  for (const from of ORDER_STATUSES) {
    assert.deepEqual([...TRANSITIONS[from]].sort(), recorded.get(from)?.sort(), from);
    for (const to of ORDER_STATUSES) {
      if (recorded.get(from)?.includes(to)) {
        assert.doesNotThrow(() => requireTransition(from, to));
        continue;
      }
      assert.throws(
        () => requireTransition(from, to),
        (error) =>
          error instanceof Refusal &&
          error.code === 'order_state_conflict' &&
          error.facts.details?.status === from &&
          !!error.facts.reason?.en.includes(to),
        `${from} → ${to}`,
      );
    }
  }
});

test('every status can be reached, and from every status an end', () => {
  const reach = (start: readonly string[]): Set<string> => {
    const seen = new Set(start);
    for (const status of seen) for (const next of TRANSITIONS[status as keyof typeof TRANSITIONS]) seen.add(next);
    return seen;
  };
  assert.deepEqual([...reach(FIRST_STATUSES)].sort(), [...ORDER_STATUSES].sort());
  const finals = ORDER_STATUSES.filter((status) => TRANSITIONS[status].length === 0);
  for (const status of ORDER_STATUSES)
    assert.ok(
      finals.some((final) => reach([status]).has(final)),
      status,
    );
});

const PREPARED: CertificateRecord = {
  id: 'c1',
  orderId: 'o',
  accountId: 'a',
  state: 'prepared',
  createdAt: 1,
  pendingSince: null,
  commonName: 'example.com',
  names: ['example.com'],
  csr: null,
  publicKey: { type: 'p256', bits: 256, spki: new Uint8Array([1]), fingerprint: 'f' },
  signHash: 'sha256',
  validityDays: null,
  customExpirationDate: null,
  willRevoke: [],
  preparation: {
    ...{ issuerId: 'i', serial: '0a', notBefore: 0, notAfter: 1000 },
    ...{ toBeSigned: new Uint8Array([2]), preparedAt: 2, leaseEndsAt: 3 },
  },
  der: null,
  issuedAt: null,
  version: null,
  replacesId: null,
  revocation: null,
  cloudKeyId: null,
  keepsEncryptionKey: false,
  encryption: null,
};

test('a lost signer leaves a voided serial number, and nothing nobody asked for', () => {
  const { voided, pending } = afterLostSigner(PREPARED, 'c2');
  assert.equal(pending, null);
  assert.deepEqual(voided, { ...PREPARED, state: 'voided' });
});

test('an id that was answered survives a lost signer, without the serial number that may be signed', () => {
  const record = { ...PREPARED, pendingSince: 1 };
  const { voided, pending } = afterLostSigner(record, 'c2');
  assert.deepEqual(voided, { ...record, id: 'c2', state: 'voided' });
  assert.deepEqual(pending, { ...record, state: 'pending', preparation: null });
});

test('only what is prepared can lose its signer', () => {
  for (const state of CERTIFICATE_STATES.filter((one) => one !== 'prepared')) {
    assert.throws(() => afterLostSigner({ ...PREPARED, state }, 'c2'), /not prepared/, state);
  }
});
