// Places of keys in tokens: pkcs11: URIs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BadKeyUri, formatKeyUri, type KeyUri, parseKeyUri } from '../../../src/domain/certificate/key-uri.ts';

const MODULE = 'module-path=/usr/lib/m.so';
const said = (text: string): string => {
  try {
    parseKeyUri(text);
  } catch (error) {
    if (error instanceof BadKeyUri) return error.message;
    throw error;
  }
  return 'accepted';
};

test('every attribute that is used here is read', () => {
  const uri = `pkcs11:token=My%20CA;serial=0a1b;object=issuing;id=%01%FFa;type=private?${MODULE}&pin-source=file:/run/pin`;
  assert.deepEqual(parseKeyUri(uri), {
    ...{ module: { kind: 'path', value: '/usr/lib/m.so' }, token: 'My CA', serial: '0a1b', object: 'issuing' },
    ...{ id: '01ff61', pinFile: '/run/pin' },
  });
  assert.equal(
    parseKeyUri(`pkcs11:token=t;id=%00?module-name=softhsm2&pin-source=file:///run/pin`).pinFile,
    '/run/pin',
  );
});

test('anything that would name another key than was written, or another program, is refused with its reason', () => {
  const cases: Readonly<Record<string, RegExp>> = {
    'PKCS11:token=t;object=o': /begin/,
    'https://example.com': /begin/,
    [`pkcs11:object=o?${MODULE}`]: /no token/,
    [`pkcs11:token=t?${MODULE}`]: /no key/,
    'pkcs11:token=t;object=o': /no module/,
    [`pkcs11:token=t;object=o?${MODULE}&module-name=m`]: /twice/,
    [`pkcs11:token=t;token=u;object=o?${MODULE}`]: /twice/,
    [`pkcs11:token=;object=o?${MODULE}`]: /no value/,
    [`pkcs11:token;object=o?${MODULE}`]: /no value/,
    [`pkcs11:token=t;object=o;slot-id=1?${MODULE}`]: /not used/,
    [`pkcs11:token=t;object=o;type=public?${MODULE}`]: /not private/,
    [`pkcs11:token=t;object=o?${MODULE}&token=u`]: /not used/,
    [`pkcs11:token=t;object=o?${MODULE}&pin-value=1234`]: /holds a PIN/,
    [`pkcs11:token=t;object=o?${MODULE}&pin-source=|/bin/pin`]: /not a file/,
    [`pkcs11:token=t;object=o?${MODULE}&pin-source=pin`]: /not a file/,
    'pkcs11:token=t;object=o?module-path=m.so': /not absolute/,
    'pkcs11:token=t;object=o?module-name=../m': /plain name/,
    [`pkcs11:token=t t;object=o?${MODULE}`]: /percent-encoded/,
    [`pkcs11:token=%ZZ;object=o?${MODULE}`]: /percent-encoded/,
    [`pkcs11:token=%FF;object=o?${MODULE}`]: /UTF-8/,
    [`pkcs11:token=a%0Ab;object=o?${MODULE}`]: /control/,
    [`pkcs11:token=${'t'.repeat(33)};object=o?${MODULE}`]: /32 bytes/,
    [`pkcs11:token=t;id=${'%00'.repeat(65)}?${MODULE}`]: /64 bytes/,
    [`pkcs11:token=t;object=${'o'.repeat(1_100)}?${MODULE}`]: /1024/,
  };
  for (const [uri, reason] of Object.entries(cases)) assert.match(said(uri), reason, uri);
});

test('a URI that holds a PIN is not repeated in the error', () => {
  assert.doesNotMatch(said(`pkcs11:token=t;object=o?pin-value=s3cret&${MODULE}`), /s3cret/);
});

test('a place that is written is read back as it is, whatever its texts hold', () => {
  const text = (maxLength: number) =>
    fc.string({ unit: 'grapheme', minLength: 1, maxLength }).filter((one) => {
      const bytes = Buffer.byteLength(one);
      return bytes <= maxLength && !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u.test(one);
    });
  const path = text(40).map((one) => `/${one}`);
  const hex = fc.uint8Array({ minLength: 1, maxLength: 64 }).map((one) => Buffer.from(one).toString('hex'));
  const module = fc.oneof(
    path.map((value) => ({ kind: 'path' as const, value })),
    fc.constant({ kind: 'name' as const, value: 'softhsm2' }),
  );
  const uris: fc.Arbitrary<KeyUri> = fc.record({
    ...{ module, token: text(32), serial: fc.option(text(16)), object: text(60), id: fc.option(hex) },
    pinFile: fc.option(path),
  });
  fc.assert(
    fc.property(uris, (uri) => assert.deepEqual(parseKeyUri(formatKeyUri(uri)), { ...uri, module: { ...uri.module } })),
  );
});

test('any text is parsed or refused, and what is parsed is stable', () => {
  const part = fc.oneof(
    fc.constantFrom('token=t', 'object=o', 'id=%01', 'serial=', ';', '?', '&', MODULE, 'pin-source=file:/p', '%', '='),
    fc.string({ maxLength: 5 }),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
      const uri = `pkcs11:${parts.join('')}`;
      if (said(uri) === 'accepted') assert.deepEqual(parseKeyUri(formatKeyUri(parseKeyUri(uri))), parseKeyUri(uri));
    }),
  );
});
