// An external CA, as an operator may import it: a root, authorities below it, and the last one's key.
import { createHash, sign } from 'node:crypto';
import { readCertificate, spkiOf } from '../../src/adapters/ca/certificate-reader.ts';
import { readImportedIssuer } from '../../src/adapters/ca/imported-issuer.ts';
import {
  distinguishedName,
  extension,
  SIGNATURE_ALGORITHMS,
  signedCertificate,
  toBeSigned,
} from '../../src/adapters/ca/to-be-signed.ts';
import { DerReader } from '../../src/adapters/der/reader.ts';
import {
  boolean,
  ia5String,
  implicit,
  integer,
  namedBits,
  octetString,
  oid,
  sequence,
} from '../../src/adapters/der/writer.ts';
import { type Issuer, PURPOSES, type Purpose } from '../../src/domain/certificate/authority.ts';
import { pem } from '../../src/domain/certificate/pem.ts';
import type { TestApp } from './app.ts';
import { newKeyPair } from './csr.ts';

const DAY = 86_400_000;

/** SHA-1 key identifiers, as most tools compute them. Ours differ; importing must accept both. */
function sha1KeyId(spki: Uint8Array): Uint8Array {
  const reader = new DerReader(spki).sequence();
  reader.any();
  return createHash('sha1').update(reader.bitString()).digest();
}

export interface Tier {
  readonly name?: { readonly country?: string; readonly organization?: string; readonly commonName?: string };
  readonly days?: number;
  /** In addition to the standard ones. */
  readonly extensions?: readonly Uint8Array[];
  readonly pathLength?: number;
  readonly usage?: readonly number[];
  /** A certificate whose key and name this one is for, instead of new ones: it is cross-signed. */
  readonly certifies?: Uint8Array;
  /** Of the last one, if its key is in a token. */
  readonly spki?: Uint8Array;
}

export interface ExternalCa {
  /** PEM, the issuing authority first and the root last. */
  readonly chain: readonly string[];
  readonly key: string;
}

/** On P-256. The root comes first. */
export function caChain(tiers: readonly Tier[], now = Date.now()): ExternalCa {
  const algorithm = SIGNATURE_ALGORITHMS.p256.sha256!;
  let above: { readonly keys: ReturnType<typeof newKeyPair>; readonly name: Uint8Array } | undefined;
  const chain: string[] = [];
  for (const [depth, tier] of tiers.entries()) {
    const { days = 1_000, extensions = [], pathLength = tiers.length - 1 - depth, usage = [5, 6] } = tier;
    const made = newKeyPair('p256');
    const keys = { ...made, spki: tier.spki ?? made.spki };
    const commonName = depth === 0 ? 'Elsewhere Root' : `Elsewhere Issuing ${depth}`;
    const own = tier.certifies && readCertificate(tier.certifies);
    const name = own?.subject ?? distinguishedName(tier.name ?? { organization: 'Elsewhere', commonName });
    const spki = tier.certifies ? spkiOf(tier.certifies) : keys.spki;
    const signer: NonNullable<typeof above> = above ?? { keys, name };
    const bytes = toBeSigned({
      serial: Uint8Array.of(depth + 1, 1, 2, 3, 4, 5, 6, 7, 8),
      algorithm,
      issuer: signer.name,
      notBefore: now - DAY,
      notAfter: now + days * DAY,
      subject: name,
      spki,
      extensions: [
        extension({ id: oid('2.5.29.19'), isCritical: true, value: sequence([boolean(true), integer(pathLength)]) }),
        extension({ id: oid('2.5.29.15'), isCritical: true, value: namedBits(usage) }),
        extension({ id: oid('2.5.29.14'), isCritical: false, value: octetString(own?.keyId ?? sha1KeyId(spki)) }),
        extension({
          id: oid('2.5.29.35'),
          isCritical: false,
          value: sequence([implicit(0, octetString(sha1KeyId(signer.keys.spki)))]),
        }),
        ...extensions,
      ],
    });
    const signature = sign('sha256', bytes, signer.keys.privateKey);
    chain.unshift(pem('CERTIFICATE', signedCertificate(bytes, algorithm, signature)));
    above = { keys, name };
  }
  return { chain, key: above!.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

export const extendedKeyUsage = (...ids: string[]): Uint8Array =>
  extension({ id: oid('2.5.29.37'), isCritical: false, value: sequence(ids.map(oid)) });
export const policies = (...ids: string[]): Uint8Array =>
  extension({ id: oid('2.5.29.32'), isCritical: true, value: sequence(ids.map((id) => sequence([oid(id)]))) });

/** GeneralNames, encoded. */
export const dnsConstraint = (base: string): Uint8Array => implicit(2, ia5String(base));
export const nameConstraints = (
  { permitted = [], excluded = [] }: { permitted?: readonly Uint8Array[]; excluded?: readonly Uint8Array[] },
  isCritical = true,
): Uint8Array => {
  const list = (number: number, names: readonly Uint8Array[]) =>
    names.length > 0 ? [implicit(number, sequence(names.map((name) => sequence([name]))))] : [];
  const value = sequence([...list(0, permitted), ...list(1, excluded)]);
  return extension({ id: oid('2.5.29.30'), isCritical, value });
};

interface ImportOptions {
  readonly purposes?: readonly Purpose[];
  readonly policy?: string | null;
}

/** What `reseal ca import` reads. */
export const readExternal = (
  { now, app: { newId } }: Pick<TestApp, 'now' | 'app'>,
  { chain, key }: ExternalCa,
  { purposes = PURPOSES, policy = null }: ImportOptions = {},
) => readImportedIssuer({ chain: chain.join('\n'), key, purposes, policy }, now(), newId);

/** `reseal ca import`, without the process, taken up by the running service. */
export async function importExternal(app: TestApp, ca: ExternalCa, options: ImportOptions = {}): Promise<Issuer> {
  const chain = readExternal(app, ca, options);
  const issuer = await app.app.store.transaction((tx) => tx.issuers.adopt(chain));
  await app.issuance.sweep();
  return issuer;
}
