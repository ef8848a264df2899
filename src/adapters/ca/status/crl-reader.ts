// Reads CRLs that this authority once published, to restore the revocations a backup does not know. A CRL comes from a
// mirror or a cache, so nothing in it counts before its signature has verified against an issuer of the store. Forms that
// this authority never publishes (delta CRLs, indirect CRLs, unknown critical extensions) are refused, not guessed at.
import { verify, X509Certificate } from 'node:crypto';
import type { PublicIssuer } from '../../../domain/certificate/authority.ts';
import type { RevocationReason } from '../../../domain/certificate/certificate.ts';
import type { CrlEntry, ReadCrl } from '../../../domain/revocation/ports.ts';
import { CRL_SHARDS, type CrlRef, REASON_CODES, shardOf } from '../../../domain/revocation/revocation.ts';
import { DerError, DerReader } from '../../der/reader.ts';
import { TAG } from '../../der/writer.ts';
import { openSm2PublicKey, sm2Verify } from '../../sm2/sm2.ts';
import { type ReadExtension, readCertificate, readExtensionList, spkiOf } from '../certificate-reader.ts';
import { hasWholeCrl } from '../issuers.ts';
import { SIGNATURE_ALGORITHMS } from '../to-be-signed.ts';

const ID = { reason: '2.5.29.21', number: '2.5.29.20', distributionPoint: '2.5.29.28' } as const;
const VERSION_2 = 1;
const URI = 0x86;

/** Revoked for a reason we do not write, by an authority that was imported: the certificate stays revoked all the same. */
const OTHER_REASON: RevocationReason = 'cessation_of_operation';
const REASONS: ReadonlyMap<number, RevocationReason> = new Map(
  Object.entries(REASON_CODES).map(([reason, code]) => [code, reason as RevocationReason]),
);

/** The bytes are no CRL, or none that an issuer of this store has signed. */
export class CrlRejected extends Error {}

/** Reads DER or PEM. Throws CrlRejected. */
export function readCrl(bytes: Uint8Array, issuers: readonly PublicIssuer[]): ReadCrl {
  const der = derOf(bytes);
  try {
    return read(der, issuers);
  } catch (error) {
    if (error instanceof DerError) throw new CrlRejected(`it is not a CRL: ${error.message}`, { cause: error });
    throw error;
  }
}

function derOf(bytes: Uint8Array): Uint8Array {
  if (bytes[0] === TAG.sequence) return bytes;
  const [, base64] =
    /-----BEGIN X509 CRL-----([^-]+)-----END X509 CRL-----/.exec(Buffer.from(bytes).toString('latin1')) ?? [];
  if (base64 === undefined) throw new CrlRejected('it is neither DER nor PEM of a CRL');
  return Buffer.from(base64, 'base64');
}

function read(der: Uint8Array, issuers: readonly PublicIssuer[]): ReadCrl {
  const outer = new DerReader(der);
  const list = outer.sequence();
  outer.end();
  const signed = list.any();
  const algorithm = list.any();
  const signature = list.bitString();
  list.end();
  const content = new DerReader(signed).sequence();
  if (Buffer.compare(content.integer(), Uint8Array.of(VERSION_2)) !== 0) throw new DerError('version');
  if (Buffer.compare(content.any(), algorithm) !== 0) throw new DerError('two different signature algorithms');
  const name = content.any();
  const issuer = issuers.find((one) => isSignedBy(one, { name, signed, algorithm, signature }));
  if (!issuer) throw new CrlRejected('no issuer of this store has signed it');
  const [thisUpdate, nextUpdate] = [momentIn(content), momentIn(content)];
  let tail = content.context(0);
  const entries = tail ? [] : entriesIn(content.sequence(), issuer);
  tail ??= content.context(0);
  content.end();
  const extensions = tail ? readExtensionList(tail.sequence()).byId : new Map<string, ReadExtension>();
  const number = extensions.get(ID.number);
  if (!number) throw new DerError('no CRL number');
  requireKnown(extensions, [ID.distributionPoint]);
  const point = extensions.get(ID.distributionPoint);
  const addresses = point ? addressesIn(point.value) : [];
  return {
    issuerId: issuer.id,
    shard: shardIn(issuer, addresses),
    number: numberIn(number.value),
    ...{ thisUpdate, nextUpdate, entries, addresses, der },
    issuerNotAfter: new X509Certificate(issuer.certificate).validToDate.getTime(),
  };
}

interface Signed {
  readonly name: Uint8Array;
  readonly signed: Uint8Array;
  readonly algorithm: Uint8Array;
  readonly signature: Uint8Array;
}

function isSignedBy({ certificate, keyType }: PublicIssuer, { name, signed, algorithm, signature }: Signed): boolean {
  if (Buffer.compare(readCertificate(certificate).subject, name) !== 0) return false;
  const hash = Object.entries(SIGNATURE_ALGORITHMS[keyType]).find(([, one]) => Buffer.compare(one, algorithm) === 0);
  if (!hash) return false;
  const spki = spkiOf(certificate);
  if (keyType === 'sm2') return sm2Verify(openSm2PublicKey(spki), signed, signature);
  return verify(hash[0], signed, { key: Buffer.from(spki), format: 'der', type: 'spki' }, signature);
}

function entriesIn(list: DerReader, { id: issuerId, role }: PublicIssuer): (CrlEntry & CrlRef)[] {
  const entries: (CrlEntry & CrlRef)[] = [];
  while (!list.isAtEnd) {
    const entry = list.sequence();
    const serial = Buffer.from(entry.positive()).toString('hex');
    const revokedAt = momentIn(entry);
    const extensions = entry.isAtEnd ? undefined : readExtensionList(entry.sequence()).byId;
    entry.end();
    if (extensions) requireKnown(extensions, []);
    const reason = extensions?.get(ID.reason)?.value;
    entries.push({
      ...{ issuerId, shard: role === 'root' ? 0 : shardOf(serial), serial, revokedAt },
      reason: (reason && REASONS.get(enumeratedIn(reason))) ?? OTHER_REASON,
    });
  }
  return entries;
}

function requireKnown(extensions: ReadonlyMap<string, ReadExtension>, known: readonly string[]): void {
  for (const [id, { isCritical }] of extensions) {
    if (isCritical && !known.includes(id)) throw new CrlRejected(`it has the critical extension ${id}`);
  }
}

function enumeratedIn(value: Uint8Array): number {
  const { tag, content } = new DerReader(value).primitive();
  if (tag !== TAG.enumerated || content.length !== 1) throw new DerError('a reason that is not one');
  return content[0] ?? 0;
}

function numberIn(value: Uint8Array): number {
  const number = Number(BigInt(`0x${Buffer.from(new DerReader(value).integer()).toString('hex')}`));
  if (!Number.isSafeInteger(number)) throw new CrlRejected('its CRL number is larger than this service can count');
  return number;
}

/** Only the full name of the distribution point: any other field narrows the CRL in a way that we do not publish. */
function addressesIn(value: Uint8Array): string[] {
  const point = new DerReader(value).sequence();
  const name = point.context(0)?.context(0);
  if (!name || !point.isAtEnd) throw new CrlRejected('its issuing distribution point is not one of this service');
  const addresses: string[] = [];
  while (!name.isAtEnd) {
    const { tag, content } = name.primitive();
    if (tag !== URI) throw new CrlRejected('its issuing distribution point is not a URL');
    addresses.push(Buffer.from(content).toString('latin1'));
  }
  return addresses;
}

/** Null for a CRL that is none of this service's own, such as one that an imported authority published before. */
function shardIn(issuer: PublicIssuer, addresses: readonly string[]): number | null {
  if (hasWholeCrl(issuer)) return addresses.length === 0 ? 0 : null;
  const { id } = issuer;
  const shards = new Set(addresses.map((one) => Number(new RegExp(`/crl/${id}/(\\d{1,2})\\.crl$`).exec(one)?.[1])));
  const [shard = Number.NaN] = shards;
  return shards.size === 1 && shard < CRL_SHARDS ? shard : null;
}

const UTC_TIME = /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/;
const GENERALIZED_TIME = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/;
/** RFC 5280, 4.1.2.5.1: two-digit years from 50 on are of the last century. */
const PIVOT = 50;

function momentIn(reader: DerReader): number {
  const { tag, content } = reader.primitive();
  const pattern = tag === TAG.utcTime ? UTC_TIME : tag === TAG.generalizedTime ? GENERALIZED_TIME : undefined;
  const parts = pattern?.exec(Buffer.from(content).toString('latin1'))?.slice(1).map(Number);
  if (!parts) throw new DerError('not a time');
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts;
  const full = tag === TAG.generalizedTime ? year : year + (year < PIVOT ? 2000 : 1900);
  return Date.UTC(full, month - 1, day, hour, minute, second);
}
