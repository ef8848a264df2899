// An external CA, as an operator may import it: a root and an issuing CA below it.
import { createHash, sign } from 'node:crypto';
import {
  distinguishedName,
  extension,
  SIGNATURE_ALGORITHMS,
  signedCertificate,
  toBeSigned,
} from '../../src/adapters/ca/to-be-signed.ts';
import { DerReader } from '../../src/adapters/der/reader.ts';
import { boolean, implicit, integer, namedBits, octetString, oid, sequence } from '../../src/adapters/der/writer.ts';
import { pem } from '../../src/domain/certificate/pem.ts';
import { newKeyPair } from './csr.ts';

const DAY = 86_400_000;

/** SHA-1 key identifiers, as most tools compute them. Ours differ; importing must accept both. */
function sha1KeyId(spki: Uint8Array): Uint8Array {
  const reader = new DerReader(spki).sequence();
  reader.any();
  return createHash('sha1').update(reader.bitString()).digest();
}

interface PairOptions {
  readonly now?: number;
  readonly rootDays?: number;
  readonly issuingDays?: number;
  /** In addition to the standard ones. */
  readonly issuingExtensions?: readonly Uint8Array[];
  /** The pathLenConstraint of the root. */
  readonly rootPathLength?: number;
  readonly issuingUsage?: readonly number[];
}

export function caPair(kind: 'p256', options: PairOptions = {}) {
  const { now = Date.now(), rootDays = 1_000, issuingDays = 1_000 } = options;
  const [rootKey, issuingKey] = [newKeyPair(kind), newKeyPair(kind)];
  const algorithm = SIGNATURE_ALGORITHMS.p256.sha256!;
  const issuer = distinguishedName({ organization: 'Elsewhere', commonName: 'Elsewhere Root' });
  const certify = (subject: Uint8Array, spki: Uint8Array, serial: number, days: number) => {
    const isRoot = serial === 1;
    const pathLength = isRoot ? (options.rootPathLength ?? 1) : 0;
    const usage = isRoot ? [5, 6] : (options.issuingUsage ?? [5, 6]);
    const bytes = toBeSigned({
      serial: Uint8Array.of(serial, 1, 2, 3, 4, 5, 6, 7, 8),
      algorithm,
      issuer,
      notBefore: now - DAY,
      notAfter: now + days * DAY,
      subject,
      spki,
      extensions: [
        extension({ id: oid('2.5.29.19'), isCritical: true, value: sequence([boolean(true), integer(pathLength)]) }),
        extension({ id: oid('2.5.29.15'), isCritical: true, value: namedBits(usage) }),
        extension({ id: oid('2.5.29.14'), isCritical: false, value: octetString(sha1KeyId(spki)) }),
        extension({
          id: oid('2.5.29.35'),
          isCritical: false,
          value: sequence([implicit(0, octetString(sha1KeyId(rootKey.spki)))]),
        }),
        ...(isRoot ? [] : (options.issuingExtensions ?? [])),
      ],
    });
    return pem('CERTIFICATE', signedCertificate(bytes, algorithm, sign('sha256', bytes, rootKey.privateKey)));
  };
  const name = distinguishedName({ organization: 'Elsewhere', commonName: 'Elsewhere Issuing' });
  return {
    root: { pem: certify(issuer, rootKey.spki, 1, rootDays) },
    issuing: {
      pem: certify(name, issuingKey.spki, 2, issuingDays),
      key: issuingKey.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    },
  };
}
