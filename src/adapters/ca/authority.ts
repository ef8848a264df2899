// The embedded certificate authority: selects the issuer, encodes and lints the bytes to be signed, and signs them. It is
// stateless: the use case records a serial number first, and has it signed once.
import { X509Certificate } from 'node:crypto';
import {
  type CertificateAuthority,
  type CertificateContent,
  ISSUER_KEY_TYPES,
  type Issuer,
  type IssuerKeyType,
} from '../../domain/certificate/authority.ts';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import { CRL_SHARDS, shardOf } from '../../domain/revocation/revocation.ts';
import { openIssuer } from './issuer-key.ts';
import { candidatesAmong, candidatesFor, chainNotAfter, servedBy } from './issuer-selection.ts';
import { crlUrl, issuerCertificateUrl, newSerial } from './issuers.ts';
import { lint } from './lint.ts';
import { type IssuerExtensions, issuerExtensions, leafExtensions } from './profiles.ts';
import { distinguishedName, signatureAlgorithm, signedCertificate, toBeSigned } from './to-be-signed.ts';

const MAX_COMMON_NAME = 64;

interface OpenSigner {
  readonly issuer: Issuer;
  readonly name: Uint8Array;
  readonly keyId: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  /** By CRL shard. */
  readonly extensions: readonly IssuerExtensions[];
  readonly signBytes: (signHash: SignHash, bytes: Uint8Array) => Promise<Uint8Array>;
}

interface EmbeddedAuthority extends CertificateAuthority {
  /** Replaces the issuers, after an import. What was prepared under a retired one is still signed. */
  use(issuers: readonly Issuer[]): void;
}

/** Issuers of other key types than `keyTypes` are served, but sign nothing. */
export function openAuthority(
  issuers: readonly Issuer[],
  pkiUrl: string,
  keyTypes: readonly IssuerKeyType[] = ISSUER_KEY_TYPES,
): EmbeddedAuthority {
  let open = openIssuers(issuers, pkiUrl, keyTypes);

  function signerOf(issuerId: string): OpenSigner {
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
      const { issuer, name, keyId, notBefore, notAfter, extensions } = signerOf(content.issuerId);
      const algorithm = signatureAlgorithm(issuer.keyType, content.signHash);
      const serial = newSerial(content.notBefore);
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
        issuerNotBefore: notBefore,
        issuerNotAfter: notAfter,
        issuerKeyId: keyId,
        spki: content.publicKey.spki,
      });
      if (findings.length > 0) throw new Error(`lint failed, nothing is signed: ${findings.join('; ')}`);
      return { serial: serialText, toBeSigned: bytes };
    },

    async sign(issuerId, signHash, bytes) {
      const { issuer, signBytes } = signerOf(issuerId);
      return signedCertificate(bytes, signatureAlgorithm(issuer.keyType, signHash), await signBytes(signHash, bytes));
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
  // Includes retired issuers: one retired between preparing and signing still has to sign.
  const signers = new Map<string, OpenSigner>();
  for (const issuer of able) {
    const { id, role, privateKey } = issuer;
    if (role === 'issuing' && privateKey)
      signers.set(id, openSigner(issuer, privateKey, chainNotAfter(issuer, issuers), pkiUrl));
  }
  const byId = new Map(issuers.map((issuer) => [issuer.id, issuer]));
  return { byId, signers, candidates, served: servedBy(candidates) };
}

function openSigner(issuer: Issuer, privateKey: Uint8Array, notAfter: number, pkiUrl: string): OpenSigner {
  const { key, name, keyId } = openIssuer(issuer, privateKey);
  return {
    issuer,
    name,
    keyId,
    notBefore: new X509Certificate(issuer.certificate).validFromDate.getTime(),
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

/** X.520 allows 64 characters; a longer common name appears in the subject alternative names only. */
function shownCommonName({ commonName }: CertificateContent): string | undefined {
  return commonName === null || [...commonName].length > MAX_COMMON_NAME ? undefined : commonName;
}
