// The embedded certificate authority: chooses the issuer, writes and looks over what is to be signed, signs it. It
// keeps nothing: that a serial number is written down first, and signed once, is the use case's part.
import {
  type CertificateAuthority,
  type CertificateContent,
  ISSUER_KEY_TYPES,
  type Issuer,
  type IssuerKeyType,
} from '../../domain/certificate/authority.ts';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import { CRL_SHARDS, shardOf } from '../../domain/revocation/revocation.ts';
import { readCertificate } from './certificate-reader.ts';
import { openIssuerKey } from './issuer-key.ts';
import { candidatesAmong, candidatesFor, endOf, servedBy } from './issuer-selection.ts';
import { crlUrl, issuerCertificateUrl, newSerial } from './issuers.ts';
import { lint } from './lint.ts';
import { type IssuerExtensions, issuerExtensions, keyIdOf, leafExtensions } from './profiles.ts';
import { distinguishedName, SIGNATURE_ALGORITHMS, signedCertificate, toBeSigned } from './to-be-signed.ts';

const MAX_COMMON_NAME = 64;

interface OpenIssuer {
  readonly issuer: Issuer;
  readonly name: Uint8Array;
  readonly keyId: Uint8Array;
  readonly notAfter: number;
  /** By shard of the list of revocations. */
  readonly extensions: readonly IssuerExtensions[];
  readonly signBytes: (signHash: SignHash, bytes: Uint8Array) => Promise<Uint8Array>;
}

export interface EmbeddedAuthority extends CertificateAuthority {
  /** Goes on with these, which others may have brought or retired meanwhile. What was prepared before is still signed. */
  use(issuers: readonly Issuer[]): void;
}

/** Of types that are not among `keyTypes` certificates are served, and nothing is signed. */
export function openAuthority(
  issuers: readonly Issuer[],
  pkiUrl: string,
  keyTypes: readonly IssuerKeyType[] = ISSUER_KEY_TYPES,
): EmbeddedAuthority {
  let open = openIssuers(issuers, pkiUrl, keyTypes);

  function signer(issuerId: string): OpenIssuer {
    const found = open.signers.get(issuerId);
    if (!found) throw new Error(`issuer ${issuerId} cannot sign`);
    return found;
  }

  return {
    use(next) {
      open = openIssuers(next, pkiUrl, keyTypes);
    },

    issuerFor(keyType, signHash, until) {
      const able = candidatesFor(open.candidates, keyType, signHash);
      return able.find(({ notAfter }) => notAfter >= until) ?? able.sort((a, b) => b.notAfter - a.notAfter)[0];
    },

    get served() {
      return open.served;
    },

    prepare(content) {
      const { issuer, name, keyId, notAfter, extensions } = signer(content.issuerId);
      const algorithm = algorithmOf(issuer, content.signHash);
      const serial = newSerial();
      const serialText = Buffer.from(serial).toString('hex');
      const shownName = shownCommonName(content);
      const bytes = toBeSigned({
        serial,
        algorithm,
        issuer: name,
        notBefore: content.notBefore,
        notAfter: content.notAfter,
        subject: distinguishedName(shownName === undefined ? {} : { commonName: shownName }),
        spki: content.publicKey.spki,
        extensions: leafExtensions({
          role: content.role,
          kind: content.kind,
          trust: content.trust,
          isRsa: content.publicKey.type === 'rsa',
          names: content.names,
          hasSubject: shownName !== undefined,
          spki: content.publicKey.spki,
          issuer: extensions[shardOf(serialText)]!,
        }),
      });
      const findings = lint(bytes, {
        ...content,
        algorithm,
        issuer: name,
        issuerNotAfter: notAfter,
        issuerKeyId: keyId,
        spki: content.publicKey.spki,
      });
      if (findings.length > 0) throw new Error(`what was to be signed is not what was decided: ${findings.join('; ')}`);
      return { serial: serialText, toBeSigned: bytes };
    },

    async sign(issuerId, signHash, bytes) {
      const { issuer, signBytes } = signer(issuerId);
      return signedCertificate(bytes, algorithmOf(issuer, signHash), await signBytes(signHash, bytes));
    },

    chainOf(issuerId) {
      const chain: Uint8Array[] = [];
      const { byId } = open;
      for (let one = byId.get(issuerId); one; one = one.parentId === null ? undefined : byId.get(one.parentId)) {
        chain.push(one.certificate);
      }
      return chain;
    },
  };
}

function openIssuers(issuers: readonly Issuer[], pkiUrl: string, keyTypes: readonly IssuerKeyType[]) {
  const able = issuers.filter(({ keyType }) => keyTypes.includes(keyType));
  const candidates = candidatesAmong(able.map((one) => ({ ...one, hasKey: one.privateKey !== null })));
  // Retired ones too: one that is retired between preparing and signing still owes that signature.
  const signers = new Map<string, OpenIssuer>();
  for (const issuer of able) {
    const { id, role, privateKey } = issuer;
    if (role === 'issuing' && privateKey)
      signers.set(id, openIssuer(issuer, privateKey, endOf(issuer, issuers), pkiUrl));
  }
  const byId = new Map(issuers.map((issuer) => [issuer.id, issuer]));
  return { byId, signers, candidates, served: servedBy(candidates) };
}

function openIssuer(issuer: Issuer, privateKey: Uint8Array, notAfter: number, pkiUrl: string): OpenIssuer {
  const key = openIssuerKey(issuer.keyType, privateKey);
  const { subject, keyId: named } = readCertificate(issuer.certificate);
  // An authority that was brought along may have named its key otherwise than we would.
  const keyId = named ?? keyIdOf(key.spki);
  return {
    issuer,
    name: subject,
    keyId,
    notAfter,
    extensions: Array.from({ length: CRL_SHARDS }, (_, shard) =>
      issuerExtensions(keyId, {
        issuerCertificate: issuerCertificateUrl(pkiUrl, issuer.id),
        crl: crlUrl(pkiUrl, issuer.id, shard),
        ocsp: `${pkiUrl}/ocsp`,
      }),
    ),
    signBytes: key.sign,
  };
}

function algorithmOf({ keyType }: Issuer, signHash: SignHash): Uint8Array {
  const algorithm = SIGNATURE_ALGORITHMS[keyType][signHash];
  if (!algorithm) throw new Error(`an issuer on ${keyType} does not sign with ${signHash}`);
  return algorithm;
}

/** X.520 gives a common name 64 characters; a longer one stands among the alternative names only. */
function shownCommonName({ commonName }: CertificateContent): string | undefined {
  return commonName === null || [...commonName].length > MAX_COMMON_NAME ? undefined : commonName;
}
