// The embedded certificate authority: selects the issuer, encodes and lints the bytes to be signed, and signs them. It is
// stateless: the use case records a serial number first, and has it signed once.
import { X509Certificate } from 'node:crypto';
import {
  type CertificateAuthority,
  type CertificateContent,
  ISSUER_KEY_TYPES,
  type Issuer,
  type IssuerKeyType,
  type IssuerSlot,
  PURPOSES,
  type Purpose,
  purposeOf,
} from '../../domain/certificate/authority.ts';
import { limitsSubject, type NameConstraints } from '../../domain/certificate/name-constraints.ts';
import type { LintedBytes } from '../../domain/issuance/lint.ts';
import { CRL_SHARDS, shardOf } from '../../domain/revocation/revocation.ts';
import { type ChainLimits, limitsOf, policiesFor, purposesWithin, UnusableChain, usagesFor } from './chain-limits.ts';
import { type IssuerKey, issuerWith, keyOfIssuer, newIssuerKey, openIssuerKey, type TokenKeys } from './issuer-key.ts';
import {
  type Candidate,
  candidatesAmong,
  chainNotAfter,
  chainOf,
  combinations,
  selectionAmong,
} from './issuer-selection.ts';
import { crlUrl, hasWholeCrl, issuerCertificateUrl, newSerial } from './issuers.ts';
import { lint } from './lint.ts';
import { type IssuerExtensions, issuerExtensions, leafExtensions, purposeExtensions } from './profiles.ts';
import { OWN_POLICY } from './purposes.ts';
import { distinguishedName, signatureAlgorithm, signedCertificate, toBeSigned } from './to-be-signed.ts';

const MAX_COMMON_NAME = 64;

interface OpenSigner {
  readonly issuer: Issuer;
  readonly name: Uint8Array;
  readonly keyId: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly nameConstraints: readonly NameConstraints[];
  /** By CRL shard. */
  readonly extensions: readonly IssuerExtensions[];
  readonly hasWholeCrl: boolean;
  /** Those that its chain allows. */
  readonly purposes: readonly Purpose[];
  readonly purposeExtensions: Readonly<Record<Purpose, readonly Uint8Array[]>>;
  readonly key: IssuerKey;
}

interface EmbeddedAuthority extends CertificateAuthority {
  /** A certificate of these bytes that no one can use: signed with a key of the issuer's type that is kept nowhere. */
  imitate(bytes: LintedBytes): Promise<Uint8Array>;
  /** Replaces the issuers, after an import. What was prepared under a retired one is still signed. */
  use(issuers: readonly Issuer[]): void;
}

interface AuthorityOptions {
  /** Issuers of other key types are served, but sign nothing. */
  readonly keyTypes?: readonly IssuerKeyType[];
  /** When an issuer that is made now would end; undefined if none can be. Left out, none is ever made. */
  readonly endOfNew?: (keyType: IssuerKeyType, issuers: readonly Issuer[]) => number | undefined;
  /** Left out, issuers whose keys are in tokens sign nothing. */
  readonly tokens?: TokenKeys | undefined;
  /** Calls `use` if there is such an issuer. */
  readonly know?: (issuerId: string) => Promise<void>;
}

/** What decisions know issuers by until they are made. */
const unmadeId = ({ purpose, keyType }: IssuerSlot): string => `unmade ${purpose} ${keyType}`;
const UNMADE: ReadonlyMap<string, IssuerSlot> = new Map(
  PURPOSES.flatMap((purpose) => ISSUER_KEY_TYPES.map((keyType) => ({ purpose, keyType }))).map((slot) => [
    unmadeId(slot),
    slot,
  ]),
);

export function openAuthority(
  issuers: readonly Issuer[],
  pkiUrl: string,
  { keyTypes = ISSUER_KEY_TYPES, endOfNew, know, tokens }: AuthorityOptions = {},
): EmbeddedAuthority {
  const opened = (all: readonly Issuer[]) => openIssuers(all, pkiUrl, { keyTypes, tokens });
  let open = opened(issuers);
  const throwaways = new Map<IssuerKeyType, Promise<IssuerKey>>();

  /** One for the life of the process: making an RSA key takes half a second. */
  function throwawayKey(keyType: IssuerKeyType): Promise<IssuerKey> {
    const made =
      throwaways.get(keyType) ?? newIssuerKey(keyType, 'issuing').then((pkcs8) => openIssuerKey(keyType, pkcs8));
    throwaways.set(keyType, made);
    return made;
  }

  function signerOf(issuerId: string): OpenSigner {
    const found = open.signers.get(issuerId);
    if (!found) throw new Error(`issuer ${issuerId} cannot sign`);
    return found;
  }

  function prospectFor(purpose: Purpose, keyType: IssuerKeyType): Candidate | undefined {
    const notAfter = keyTypes.includes(keyType) ? endOfNew?.(keyType, open.issuers) : undefined;
    if (notAfter === undefined) return undefined;
    const id = unmadeId({ purpose, keyType });
    // What waits for it is decided again once it is made.
    return { id, keyType, purposes: [purpose], isImported: false, notBefore: 0, notAfter, nameConstraints: [] };
  }

  return {
    use(next) {
      open = opened(next);
    },

    issuerFor(purpose, keyType, signHash, until) {
      const { able, missing } = open.select({ purpose, keyType, signHash });
      const prospect = missing && prospectFor(purpose, missing);
      if (prospect) return prospect;
      return able.find(({ notAfter }) => notAfter >= until) ?? able.toSorted((a, b) => b.notAfter - a.notAfter)[0];
    },

    unmade: (issuerId) => UNMADE.get(issuerId),

    served: (purpose) =>
      combinations((keyType, signHash) => {
        const { able, missing } = open.select({ purpose, keyType, signHash });
        return able.length > 0 || (missing !== undefined && prospectFor(purpose, missing) !== undefined);
      }),

    prepare(content) {
      const signer = signerOf(content.issuerId);
      const { name, nameConstraints } = signer;
      const { role, names, commonName, notBefore, notAfter, isShortLived } = content;
      const { spki, type } = content.publicKey;
      signer.key.requireReady?.();
      const purpose = purposeOf(content);
      const algorithm = signatureAlgorithm(signer.issuer.keyType, content.signHash);
      const serial = newSerial(notBefore, signer.hasWholeCrl);
      const serialText = Buffer.from(serial).toString('hex');
      const shownName = shownCommonName(content, nameConstraints);
      const bytes = toBeSigned({
        serial,
        algorithm,
        issuer: name,
        notBefore,
        notAfter,
        subject: distinguishedName(shownName === undefined ? {} : { ...content.subject, commonName: shownName }),
        spki,
        extensions: leafExtensions({
          role,
          purpose,
          purposeExtensions: signer.purposeExtensions[purpose],
          isRsa: type === 'rsa',
          names,
          hasSubject: shownName !== undefined,
          isShortLived,
          spki,
          issuer: signer.extensions[shardOf(serialText)]!,
        }),
      });
      const findings = lint(bytes, {
        algorithm,
        issuer: name,
        notBefore,
        notAfter,
        maxDays: content.maxDays,
        issuerNotBefore: signer.notBefore,
        issuerNotAfter: signer.notAfter,
        commonName,
        names,
        subject: content.subject,
        isShortLived,
        spki,
        issuerKeyId: signer.keyId,
        nameConstraints,
        isWithinPurposes: signer.purposes.includes(purpose),
      });
      if (findings.length > 0) throw new Error(`lint failed, nothing is signed: ${findings.join('; ')}`);
      return { serial: serialText, toBeSigned: bytes };
    },

    async sign(issuerId, signHash, bytes) {
      const { issuer, key } = signerOf(issuerId);
      return signedCertificate(bytes, signatureAlgorithm(issuer.keyType, signHash), await key.sign(signHash, bytes));
    },

    async imitate({ issuerId, signHash, toBeSigned: bytes }) {
      const { keyType } = signerOf(issuerId).issuer;
      const { sign } = await throwawayKey(keyType);
      return signedCertificate(bytes, signatureAlgorithm(keyType, signHash), await sign(signHash, bytes));
    },

    async chainOf(issuerId) {
      const find = () => open.issuers.find(({ id }) => id === issuerId);
      if (!find()) await know?.(issuerId);
      const issuer = find();
      return issuer ? chainOf(issuer, open.issuers).map(({ certificate }) => certificate) : [];
    },
  };
}

function openIssuers(
  issuers: readonly Issuer[],
  pkiUrl: string,
  { keyTypes, tokens }: Required<Pick<AuthorityOptions, 'keyTypes'>> & Pick<AuthorityOptions, 'tokens'>,
) {
  const able = issuers.filter(({ keyType }) => keyTypes.includes(keyType));
  const select = selectionAmong(candidatesAmong(able));
  // Includes retired issuers: one retired between preparing and signing still has to sign.
  const signers = new Map<string, OpenSigner>();
  for (const issuer of able) {
    const key = issuer.role === 'issuing' ? keyOfIssuer(issuer, tokens) : undefined;
    if (key) signers.set(issuer.id, openSigner(issuer, key, issuers, pkiUrl));
  }
  return { issuers, signers, select };
}

function openSigner(issuer: Issuer, key: IssuerKey, issuers: readonly Issuer[], pkiUrl: string): OpenSigner {
  const { name, keyId } = issuerWith(key, issuer);
  const limits = limitsOf(chainOf(issuer, issuers).map(({ certificate }) => certificate));
  const isWhole = hasWholeCrl(issuer);
  return {
    ...{ issuer, name, keyId, key },
    notBefore: new X509Certificate(issuer.certificate).validFromDate.getTime(),
    notAfter: chainNotAfter(issuer, issuers),
    nameConstraints: limits.names,
    extensions: Array.from({ length: isWhole ? 1 : CRL_SHARDS }, (_, shard) =>
      issuerExtensions(keyId, {
        issuerCertificate: issuerCertificateUrl(pkiUrl, issuer.id),
        crl: crlUrl(pkiUrl, issuer.id, shard),
        ocsp: `${pkiUrl}/ocsp`,
      }),
    ),
    hasWholeCrl: isWhole,
    purposes: purposesWithin(limits),
    purposeExtensions: Object.fromEntries(
      PURPOSES.map((purpose) => [
        purpose,
        purposeExtensions(usagesFor(purpose, limits), policiesOf(purpose, limits, issuer.policy)),
      ]),
    ) as Record<Purpose, Uint8Array[]>,
  };
}

/** An authority that was imported before policies were read keeps what its certificates had. */
function policiesOf(purpose: Purpose, limits: ChainLimits, chosen: string | null): string[] {
  try {
    return policiesFor(purpose, limits, chosen);
  } catch (error) {
    if (!(error instanceof UnusableChain)) throw error;
    const own = OWN_POLICY[purpose];
    return own === undefined ? [] : [own];
  }
}

/**
 * X.520 allows 64 characters; a longer common name appears in the subject alternative names only. So does any that
 * verifiers would hold to constraints of the authority which are not meant for it.
 */
function shownCommonName(
  { commonName, names }: CertificateContent,
  nameConstraints: readonly NameConstraints[],
): string | undefined {
  const isLeftOut = names.length > 0 && limitsSubject(nameConstraints, names);
  return isLeftOut || commonName === null || [...commonName].length > MAX_COMMON_NAME ? undefined : commonName;
}
