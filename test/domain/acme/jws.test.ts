// Signed requests as data: thumbprints by the vectors of the RFCs, and parsers that refuse whatever they are given.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseContacts } from '../../../src/domain/acme/account.ts';
import { parseJwk, thumbprintInput } from '../../../src/domain/acme/jwk.ts';
import {
  bindingHeader,
  innerHeader,
  parseJws,
  parseObject,
  payloadOf,
  requestHeader,
} from '../../../src/domain/acme/jws.ts';
import { AcmeProblem } from '../../../src/domain/acme/problem.ts';

test('thumbprints are those of RFC 7638 and RFC 8037, whatever else the key says', () => {
  const n =
    '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw';
  const vectors: [object, string][] = [
    [{ kty: 'RSA', n, e: 'AQAB', alg: 'RS256', kid: '2011-04-29' }, 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs'],
    [
      { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
      'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
    ],
  ];
  for (const [jwk, thumbprint] of vectors) {
    assert.equal(
      createHash('sha256')
        .update(thumbprintInput(parseJwk(jwk)))
        .digest('base64url'),
      thumbprint,
    );
  }
});

/** The result, or undefined for a problem; any other error is a fault. */
function refusedOr<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    assert.ok(error instanceof AcmeProblem, String(error));
    return undefined;
  }
}

test('whatever is sent is read or refused as a problem', () => {
  const base64url = fc.oneof(
    fc.string(),
    fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value)).toString('base64url')),
  );
  const header = fc
    .record(
      {
        alg: fc.constantFrom('ES256', 'EdDSA', 'none', 'HS256', 1),
        nonce: fc.anything(),
        url: fc.anything(),
        jwk: fc.anything(),
        kid: fc.anything(),
        crit: fc.anything(),
      },
      { requiredKeys: [] },
    )
    .map((value) => Buffer.from(JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one))));
  const parts = fc.record({
    protected: fc.oneof(
      base64url,
      header.map((bytes) => bytes.toString('base64url')),
    ),
    payload: base64url,
    signature: base64url,
  });
  fc.assert(
    fc.property(fc.oneof(parts, fc.anything()), (value) => {
      const jws = refusedOr(() => parseJws(value));
      for (const read of [requestHeader, innerHeader, bindingHeader, payloadOf]) if (jws) refusedOr(() => read(jws));
      refusedOr(() => parseJwk(value));
      refusedOr(() => parseContacts(value));
      refusedOr(() => parseObject(String(JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? 1 : one))), 'x'));
    }),
  );
});

test('of one JWS no second spelling is read', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.string({ minLength: 1, maxLength: 3 }), (bytes, added) => {
      const text = Buffer.from(bytes).toString('base64url');
      const jws = (payload: string) => ({ protected: 'e30', payload, signature: '' });
      assert.deepEqual(parseJws(jws(text)).payload, Buffer.from(bytes));
      const other = refusedOr(() => parseJws(jws(text + added)));
      assert.notDeepEqual(other?.payload, Buffer.from(bytes));
    }),
  );
});
