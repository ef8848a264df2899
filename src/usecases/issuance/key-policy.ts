// Which keys may be certified: weak ones are found by inspection, compromised ones on the blocklist, and a cloud-held
// key that was destroyed can sign nothing any more.
import type { InspectedCsr, PublicKey } from '../../domain/certificate/public-key.ts';
import type { EscrowedKey } from '../../domain/cloud-keys/ports.ts';
import { invalid, Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId } from '../../domain/ids.ts';
import type { CertificateRequest } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import type { IssuanceTools } from './tools.ts';

interface KeyFacts {
  readonly accountId: AccountId;
  readonly request: Pick<CertificateRequest, 'keySource' | 'csr'>;
  /** The previous key, where it is certified again; null for a CSR and for a key that is made. */
  readonly reusedKey: { readonly publicKey: PublicKey; readonly cloudKeyId: string | null } | null;
  /** The certificate whose encryption key is kept (`un_modify_key`); null if none is. */
  readonly keepsKeyOf: CertificateId | null;
  readonly reader: KeyReader;
}

/** For one call, see `withKeysReadOnce`. */
export type KeyReader = Pick<IssuanceTools, 'readCsr' | 'requireStrongKey'>;

/** What `keyPolicy` reads. */
export interface KeyReads {
  readonly cloudKeys: Pick<Repositories['cloudKeys'], 'find'>;
  /** Null for a first decision: `signings.begin` looks at the blocklist, and nothing is written down for a blocked key. */
  readonly blockedKeys: Pick<Repositories['blockedKeys'], 'has'> | null;
}

/** Reads what is known about the key of a request. The result throws for a key that may not be certified. */
export async function keyPolicy(
  { inBatch, store }: Pick<IssuanceTools, 'inBatch' | 'store'>,
  db: KeyReads,
  { accountId, request: { keySource, csr }, reusedKey, keepsKeyOf, reader }: KeyFacts,
): Promise<(key: PublicKey) => void> {
  const heldId = reusedKey?.cloudKeyId ?? null;
  if (heldId !== null && !(await db.cloudKeys.find(accountId, heldId))) return refuseDestroyed;
  const sent = keySource === 'caller' && csr ? await inBatch(() => keyIn(csr, reader)) : reusedKey?.publicKey;
  const isBlocked = sent !== undefined && db.blockedKeys !== null && (await db.blockedKeys.has(sent, accountId));
  const kept = keepsKeyOf === null ? undefined : await encryptionKeyOf(store, accountId, keepsKeyOf);
  const isKeptBlocked = kept !== undefined && (await store.blockedKeys.has(kept.publicKey, accountId));
  return (key) => {
    // A key that will be made here is not there yet.
    if (keySource === 'caller') reader.requireStrongKey(key);
    if (isBlocked) throw blocked();
    if (isKeptBlocked) throw keptIsBlocked();
  };
}

/** The escrowed key of a dual certificate. */
export async function encryptionKeyOf(
  { certificates, escrowedKeys }: Repositories,
  accountId: AccountId,
  id: CertificateId,
): Promise<EscrowedKey | undefined> {
  const certificate = await certificates.find(accountId, id);
  const keyId = certificate?.state === 'issued' ? certificate.encryption?.escrowedKeyId : undefined;
  return keyId === undefined ? undefined : await escrowedKeys.find(accountId, keyId);
}

/** Undefined for a CSR that cannot be read: it is refused when the request is decided. */
function keyIn(csr: string, { readCsr }: KeyReader): PublicKey | undefined {
  try {
    return readCsr(csr);
  } catch {
    return undefined;
  }
}

const blocked = (): Refusal =>
  new Refusal('invalid_csr', {
    field: 'certificate.csr',
    reason: {
      en: 'This key is listed as compromised. Make a new one.',
      zh: '该密钥已被列为泄露密钥，请重新生成密钥。',
    },
  });

const keptIsBlocked = (): Refusal =>
  new Refusal('invalid_csr', {
    field: 'certificate.un_modify_key',
    reason: {
      en: 'The encryption key of the current certificate is listed as compromised. Leave un_modify_key out, and a new one is made.',
      zh: '当前证书的加密密钥已被列为泄露密钥，请不发送 un_modify_key，将生成新密钥。',
    },
  });

const refuseDestroyed = (): never => {
  throw invalid(
    'certificate.csr',
    'The key of the current certificate is destroyed. Send a csr, or csr_from sign-cloud-csc for a new one.',
    '当前证书的密钥已销毁，请发送 csr，或使用 csr_from sign-cloud-csc 生成新密钥。',
  );
};

/**
 * For one call: verifying a CSR and inspecting its key cost more than the rest of a reissue, so both are done once. A costly
 * one is read before anything is locked; what is wrong with it is thrown when its turn among the checks comes.
 */
export function withKeysReadOnce<Result>(
  { inspectCsr, readCsr, requireStrongKey }: Pick<IssuanceTools, 'inspectCsr' | keyof KeyReader>,
  { accountId, request: { keySource, csr } }: Pick<KeyFacts, 'accountId' | 'request'>,
  work: (reader: KeyReader) => Promise<Result>,
): Promise<Result> {
  if (keySource !== 'caller' || !csr) {
    return work({ readCsr: memoized(readCsr), requireStrongKey: memoized(requireStrongKey) });
  }
  // The CSR of the call is its only one, and no other key is inspected beside it.
  const workWith = ({ publicKey, requireStrong }: InspectedCsr) =>
    work({ readCsr: memoized(publicKey), requireStrongKey: memoized(requireStrong) });
  const inspected = inspectCsr(csr, accountId);
  return inspected instanceof Promise ? inspected.then(workWith) : workWith(inspected);
}

/** Remembers the last call of a pure function, its exception included. */
function memoized<Argument, Result>(read: (given: Argument) => Result): (given: Argument) => Result {
  let last: { readonly given: Argument; readonly result: () => Result } | undefined;
  return (given) => {
    if (last?.given !== given) last = { given, result: settle(() => read(given)) };
    return last.result();
  };
}

function settle<Result>(compute: () => Result): () => Result {
  try {
    const result = compute();
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
