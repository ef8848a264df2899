// Certificates of tls-alpn-01: what is read from untrusted bytes, and that only a correct one answers a challenge.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { readAlpnCertificate } from '../../../src/adapters/ca/alpn-certificate.ts';
import { newAlpnCertificate } from '../../../src/adapters/ca/alpn-certificate-writer.ts';
import { octetString, raw } from '../../../src/adapters/der/writer.ts';
import { faultOf } from '../../../src/domain/acme/alpn-certificate.ts';
import {
  alpnCertificate,
  altNamesExtension,
  digestOf,
  directoryName,
  dnsAltName,
  identifierExtension,
  ipAltName,
} from '../../support/alpn-certificates.ts';

const [HOST, TEXT] = ['www.example.com', 'token.thumbprint'];
const DIGEST = digestOf(TEXT).toString('base64url');
const verdictOf = (der: Uint8Array, host = HOST): string =>
  faultOf(readAlpnCertificate(der), host, DIGEST)?.en ?? 'passes';
const ours = (fields: Parameters<typeof alpnCertificate>[2] = {}, host = HOST) =>
  verdictOf(alpnCertificate(host, TEXT, fields), host);

const WRONG_NAME = /only subjectAltName/;
const UNREADABLE = /cannot be read/;
const identifier = identifierExtension(octetString(digestOf(TEXT)));
const names = altNamesExtension([dnsAltName(HOST)]);

test('only the certificate with one name, the critical digest and its own signature passes', () => {
  assert.equal(ours(), 'passes');
  assert.equal(ours({ names: [dnsAltName('WWW.Example.COM')] }), 'passes');
  assert.equal(ours({}, '192.0.2.7'), 'passes');
  assert.equal(ours({}, '2001:db8::7'), 'passes');
  const bad: readonly (readonly [string, Parameters<typeof alpnCertificate>[2], RegExp])[] = [
    ['no names', { names: [] }, WRONG_NAME],
    ['no extension of names', { extensions: [identifier] }, WRONG_NAME],
    ['two names', { names: [dnsAltName(HOST), dnsAltName('example.com')] }, WRONG_NAME],
    ['the name twice', { names: [dnsAltName(HOST), dnsAltName(HOST)] }, WRONG_NAME],
    ['another name', { names: [dnsAltName('example.com')] }, WRONG_NAME],
    ['a wildcard', { names: [dnsAltName('*.example.com')] }, WRONG_NAME],
    ['a final dot', { names: [dnsAltName(`${HOST}.`)] }, WRONG_NAME],
    ['a name with a zero byte', { names: [dnsAltName(`${HOST}\0.evil.test`)] }, WRONG_NAME],
    ['a name in another character set', { names: [raw(0x82, Buffer.from('\u212a', 'utf8'))] }, WRONG_NAME],
    ['the name as e-mail address', { names: [raw(0x81, Buffer.from(HOST))] }, WRONG_NAME],
    ['the name as URI', { names: [raw(0x86, Buffer.from(HOST))] }, WRONG_NAME],
    ['a directory name', { names: [directoryName(HOST)] }, WRONG_NAME],
    ['an address beside the name', { names: [dnsAltName(HOST), ipAltName('192.0.2.7')] }, WRONG_NAME],
    ['no identifier', { extensions: [names] }, /no acmeIdentifier/],
    ['an identifier that is not critical', { isCritical: false }, /not critical/],
    ['another digest', { identifier: octetString(digestOf('token.other')) }, /not the digest/],
    ['a digest with a byte less', { identifier: octetString(digestOf(TEXT).subarray(1)) }, /not the digest/],
    [
      'a digest with a byte more',
      { identifier: octetString(Buffer.concat([digestOf(TEXT), Buffer.of(0)])) },
      /not the digest/,
    ],
    ['a bare digest', { identifier: digestOf(TEXT) }, UNREADABLE],
    [
      'bytes after the digest',
      { identifier: Buffer.concat([octetString(digestOf(TEXT)), Buffer.of(5, 0)]) },
      UNREADABLE,
    ],
    ['two identifiers', { extensions: [names, identifier, identifier] }, UNREADABLE],
    ['names in two extensions', { extensions: [names, names, identifier] }, UNREADABLE],
    ['another issuer', { issuer: 'Some CA' }, /not self-signed/],
    ['a signature of another key', { isForged: true }, /not self-signed/],
  ];
  for (const [what, fields, expected] of bad) assert.match(ours(fields), expected, what);
});

test('an address is answered for by an iPAddress of the same bytes only', () => {
  for (const wrong of [
    dnsAltName('192.0.2.7'),
    ipAltName('192.0.2.8'),
    ipAltName('::ffff:192.0.2.7'),
    raw(0x87, Buffer.of(192, 0, 2)),
  ])
    assert.match(ours({ names: [wrong] }, '192.0.2.7'), WRONG_NAME);
  assert.match(ours({ names: [ipAltName('192.0.2.7')] }), WRONG_NAME);
});

test('the certificates of the sandbox pass, and others read them alike', () => {
  const { cert } = newAlpnCertificate(HOST, digestOf(TEXT), Date.now());
  const parsed = new X509Certificate(cert);
  assert.equal(verdictOf(parsed.raw), 'passes');
  assert.equal(parsed.subjectAltName, `DNS:${HOST}`);
  assert.ok(parsed.verify(parsed.publicKey));
});

test('bytes that are changed, cut or made up never pass and never throw', () => {
  const good = Buffer.from(alpnCertificate(HOST, TEXT));
  fc.assert(
    fc.property(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const bytes = Buffer.from(good);
      bytes[at] = (bytes[at] ?? 0) ^ change;
      assert.notEqual(verdictOf(bytes), 'passes', `byte ${at}`);
    }),
    { numRuns: 300 },
  );
  fc.assert(fc.property(fc.nat(good.length - 1), (length) => verdictOf(good.subarray(0, length)) !== 'passes'));
  fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => verdictOf(bytes) !== 'passes'));
  assert.match(verdictOf(Buffer.concat([good, Buffer.of(0)])), UNREADABLE);
  assert.match(verdictOf(Buffer.alloc(100_000, 0x30)), UNREADABLE);
});
