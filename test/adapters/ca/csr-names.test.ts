// The names that a CSR asks for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csrNames } from '../../../src/adapters/ca/csr-names.ts';
import { implicit, octetString, oid, sequence, setOf, utf8String } from '../../../src/adapters/der/writer.ts';
import { acmeCsr } from '../../support/acme-orders.ts';
import { attributesOf, csr, keyPair, name } from '../../support/csr.ts';

const base64 = (der: Uint8Array): string => Buffer.from(der).toString('base64');
const text = (names: readonly string[], commonName?: string): string =>
  base64(Buffer.from(acmeCsr(names, keyPair('p256'), commonName ?? names[0]), 'base64url'));

test('common name and alternative names count, once each, in canonical spelling', () => {
  assert.deepEqual(csrNames(text(['a.example.com', 'B.example.com', '*.example.com'])), [
    'a.example.com',
    'b.example.com',
    '*.example.com',
  ]);
  assert.deepEqual(csrNames(text(['a.example.com'], 'C.example.com')), ['c.example.com', 'a.example.com']);
  assert.deepEqual(csrNames(text(['192.0.2.1', '2001:DB8::1'])), ['192.0.2.1', '2001:db8::1']);
  assert.deepEqual(csrNames(base64(csr({ subject: sequence([]), attributes: attributesOf() }))), []);
});

test('a name of another kind, and one that no order has, are refused', () => {
  const withAltName = (one: Uint8Array) =>
    csr({
      attributes: attributesOf(
        sequence([
          oid('1.2.840.113549.1.9.14'),
          setOf([sequence([sequence([oid('2.5.29.17'), octetString(sequence([one]))])])]),
        ]),
      ),
    });
  const cases = [
    withAltName(implicit(1, octetString(Buffer.from('a@example.com')))),
    withAltName(implicit(6, octetString(Buffer.from('https://example.com')))),
    withAltName(implicit(7, octetString(Buffer.from('abc')))),
    withAltName(implicit(2, octetString(Buffer.from('a\0.example.com')))),
    csr({ subject: sequence([name('2.5.4.3', utf8String('Web Server 1'))]) }),
  ];
  for (const der of cases) assert.throws(() => csrNames(base64(der)), { code: 'invalid_csr' });
});
