// Names of certificates in renewal information, and its windows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { certIdText, parseCertId } from '../../../src/domain/acme/cert-id.ts';
import { renewalInfo } from '../../../src/domain/acme/renewal.ts';
import { preparation } from '../../support/records.ts';

const hex = (minLength: number, maxLength: number) =>
  fc.uint8Array({ minLength, maxLength }).map((bytes) => Buffer.from(bytes).toString('hex'));

test('the id of the example in RFC 9773, 4.1, is read and written', () => {
  const text = 'aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE';
  assert.deepEqual(parseCertId(text), { issuerKeyId: '69885b6b87464041e1b37b847ba0ae2cde01c8d4', serial: '87654321' });
  assert.equal(certIdText(parseCertId(text) ?? assert.fail()), text);
});

test('every id has one spelling', () => {
  const serial = hex(1, 20).filter((text) => !text.startsWith('00'));
  fc.assert(
    fc.property(hex(1, 32), serial, (issuerKeyId, number) => {
      assert.deepEqual(parseCertId(certIdText({ issuerKeyId, serial: number })), { issuerKeyId, serial: number });
    }),
  );
  fc.assert(
    fc.property(fc.stringMatching(/^[\w.=-]{0,40}$/), (text) => {
      const read = parseCertId(text);
      assert.ok(!read || certIdText(read) === text);
    }),
  );
});

test('a window lies in the last third of any life, and ends before the certificate', () => {
  const life = fc.integer({ min: 60_000, max: 400 * 86_400_000 });
  fc.assert(
    fc.property(life, hex(8, 20), (ms, serial) => {
      const made = { ...preparation('c'), notBefore: 0, notAfter: ms, serial };
      const { start, end, retryAfterSeconds } = renewalInfo({ preparation: made, revocation: null }, 0);
      assert.ok(start >= (ms * 2) / 3 - 1_000 && start <= end && end < ms, `${start} ${end} ${ms}`);
      assert.ok(retryAfterSeconds >= 60 && retryAfterSeconds <= 21_600);
    }),
  );
});
