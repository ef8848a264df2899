// Certificates for tls-alpn-01 with every fault that a server may have.
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import {
  defaultAlgorithm,
  distinguishedName,
  extension,
  signedCertificate,
  toBeSigned,
} from '../../src/adapters/ca/to-be-signed.ts';
import { explicit, ia5String, implicit, octetString, oid, sequence } from '../../src/adapters/der/writer.ts';
import { pem } from '../../src/domain/certificate/pem.ts';
import { parseAddress } from '../../src/domain/egress/addresses.ts';
import type { Identity } from './receiver-certificates.ts';

const DAY = 86_400_000;
const ALT_NAMES = '2.5.29.17';
const IDENTIFIER = '1.3.6.1.5.5.7.1.31';
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });

interface AlpnFields {
  /** Encoded GeneralNames. */
  readonly names?: readonly Uint8Array[];
  /** The extension's value. */
  readonly identifier?: Uint8Array;
  readonly isCritical?: boolean;
  /** Extensions in place of both. */
  readonly extensions?: readonly Uint8Array[];
  readonly issuer?: string;
  /** Signs with another key than its own. */
  readonly isForged?: boolean;
}

export const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();
export const dnsAltName = (name: string): Uint8Array => implicit(2, ia5String(name));
export const ipAltName = (address: string): Uint8Array => implicit(7, octetString(parseAddress(address)!));
export const directoryName = (name: string): Uint8Array => explicit(4, distinguishedName({ commonName: name }));
export const altNamesExtension = (names: readonly Uint8Array[]): Uint8Array =>
  extension({ id: oid(ALT_NAMES), isCritical: false, value: sequence(names) });
export const identifierExtension = (value: Uint8Array, isCritical = true): Uint8Array =>
  extension({ id: oid(IDENTIFIER), isCritical, value });

/** Correct for the host and the key authorization, except for the given fields. DER. */
export function alpnCertificate(host: string, keyAuthorization: string, fields: AlpnFields = {}): Uint8Array {
  const {
    names = [parseAddress(host) ? ipAltName(host) : dnsAltName(host)],
    identifier = octetString(digestOf(keyAuthorization)),
    isCritical = true,
    issuer = 'challenge',
    isForged = false,
    extensions = [altNamesExtension(names), identifierExtension(identifier, isCritical)],
  } = fields;
  const algorithm = defaultAlgorithm('p256');
  const bytes = toBeSigned({
    ...{ serial: Uint8Array.of(1), algorithm, extensions },
    ...{ issuer: distinguishedName({ commonName: issuer }), subject: distinguishedName({ commonName: 'challenge' }) },
    ...{ notBefore: Date.now() - DAY, notAfter: Date.now() + DAY },
    spki: publicKey.export({ type: 'spki', format: 'der' }),
  });
  return signedCertificate(bytes, algorithm, sign('sha256', bytes, isForged ? other.privateKey : privateKey));
}

export const asIdentity = (der: Uint8Array): Identity => ({
  cert: pem('CERTIFICATE', der),
  key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
});
