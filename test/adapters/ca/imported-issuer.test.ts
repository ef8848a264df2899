// Files that an operator brings as the chain of an authority: renewed and cross-signed certificates beside each other, and
// keys or signatures that verifiers no longer accept.
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { describe, readImportedIssuer } from '../../../src/adapters/ca/imported-issuer.ts';
import {
  distinguishedName,
  extension,
  SIGNATURE_ALGORITHMS,
  signedCertificate,
  toBeSigned,
} from '../../../src/adapters/ca/to-be-signed.ts';
import { boolean, NULL, namedBits, oid, sequence } from '../../../src/adapters/der/writer.ts';
import { pem } from '../../../src/domain/certificate/pem.ts';
import { rule } from '../../support/contract.ts';
import { type KeyPair, keyPair, newKeyPair } from '../../support/csr.ts';

const DAY = 86_400_000;
const NOW = Date.parse('2026-11-15T12:00:00Z');

interface Party {
  readonly name: string;
  readonly keys: KeyPair;
}

const isRsa = ({ keys }: Party): boolean => keys.privateKey.asymmetricKeyType === 'rsa';
const SHA1 = { rsa: sequence([oid('1.2.840.113549.1.1.5'), NULL]), ec: sequence([oid('1.2.840.10045.4.1')]) };

/** The certificate of an authority, PEM. */
function certified(party: Party, by: Party, { days = 1_000, digest = 'sha256' as 'sha256' | 'sha1' } = {}): string {
  const algorithm =
    digest === 'sha1' ? SHA1[isRsa(by) ? 'rsa' : 'ec'] : SIGNATURE_ALGORITHMS[isRsa(by) ? 'rsa' : 'p256'].sha256!;
  const bytes = toBeSigned({
    ...{ serial: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8), algorithm, spki: party.keys.spki },
    issuer: distinguishedName({ commonName: by.name }),
    subject: distinguishedName({ commonName: party.name }),
    notBefore: NOW - 100 * DAY,
    notAfter: NOW + days * DAY,
    extensions: [
      extension({ id: oid('2.5.29.19'), isCritical: true, value: sequence([boolean(true)]) }),
      extension({ id: oid('2.5.29.15'), isCritical: true, value: namedBits([5, 6]) }),
    ],
  });
  return pem('CERTIFICATE', signedCertificate(bytes, algorithm, sign(digest, bytes, by.keys.privateKey)));
}

const party = (name: string, keys = newKeyPair('p256')): Party => ({ name, keys });
const rsaPair = (modulusLength: number, publicExponent: number): KeyPair => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength, publicExponent });
  return { privateKey, spki: new Uint8Array(publicKey.export({ format: 'der', type: 'spki' })) };
};

const [old, root, middle, issuing] = [party('Old'), party('Root'), party('Middle'), party('Issuing')];
const selfSigned = certified(root, root);

/** The certificates that were taken, PEM. */
function taken(chain: readonly string[], { keys }: Party): string[] {
  const key = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const own = { chain: chain.join('\n'), key, purposes: ['private-tls'], policy: null } as const;
  return readImportedIssuer(own, NOW, () => 'id').map(({ certificate }) => pem('CERTIFICATE', certificate));
}

rule('issuer 7', 'takes from a file the chain that is valid now', () => {
  const [renewed, expired] = [certified(issuing, middle), certified(issuing, middle, { days: -1 })];
  const [above, formerly] = [certified(middle, root), certified(middle, root, { days: 0.5 })];
  const [cross, oldRoot] = [certified(root, old), certified(old, old)];
  const chain = [renewed, above, selfSigned];
  assert.deepEqual(taken([expired, formerly, cross, ...chain], issuing), chain, 'the first of each leads nowhere');
  assert.deepEqual(taken([...chain, expired, formerly, cross], issuing), chain);
  // The key of a root that another has signed: below that one it may be used.
  assert.deepEqual(taken([selfSigned, oldRoot, cross], root), [cross, oldRoot]);
  assert.throws(() => taken([expired, above, selfSigned], issuing), /ends within a day/);
  assert.throws(() => taken([renewed, above, cross], issuing), /lacks the certificate that signed CN=Root/);
});

rule('issuer 7', 'refuses signatures with SHA-1, RSA below 2048 bits, weak issuing keys', () => {
  const short = party('Short', rsaPair(1024, 65537));
  const cubic = party('Cubic', rsaPair(2048, 3));
  const table: [string[], Party, RegExp][] = [
    [[certified(issuing, short), certified(short, short)], issuing, /the key of CN=Short has less than 2048 bits/],
    [[certified(issuing, root, { digest: 'sha1' }), selfSigned], issuing, /CN=Issuing is signed with SHA-1/],
    [[certified(cubic, root), selfSigned], cubic, /its key is weak: The public exponent of the RSA key/],
  ];
  for (const [chain, whose, words] of table) assert.throws(() => taken(chain, whose), words);
  // The signature of a root proves nothing, whatever its digest.
  const trusted = certified(root, root, { digest: 'sha1' });
  assert.equal(taken([certified(issuing, root), trusted], issuing).length, 2);
});

test('an authority is described by its own key, not by that of the one below it', () => {
  const rsa = party('RSA Root', keyPair('rsa2048'));
  const keys = taken([certified(issuing, rsa), certified(rsa, rsa)], issuing).map(
    (one) => describe(new X509Certificate(one).raw).key,
  );
  assert.deepEqual(keys, ['p256', 'rsa 2048']);
});
