// Writes CSRs: of issuing authorities that are signed elsewhere; and on new keys for the sandbox, as real callers bring
// their own.
import type { IssuerKeyType } from '../../domain/certificate/authority.ts';
import { bitString, explicit, implicit, integer, oid, sequence, setOf } from '../der/writer.ts';
import { type IssuerKey, newIssuerKey, openIssuerKey } from './issuer-key.ts';
import { DEFAULT_HASH, defaultAlgorithm, distinguishedName } from './to-be-signed.ts';

const EXTENSION_REQUEST = oid('1.2.840.113549.1.9.14');

interface Request {
  readonly keyType: IssuerKeyType;
  /** Name, DER. */
  readonly subject: Uint8Array;
  /** Encoded by `extension`; those that the signer is asked for. */
  readonly extensions: readonly Uint8Array[];
}

/** PKCS#10, DER. */
export async function signedRequest(
  { spki, sign }: IssuerKey,
  { keyType, subject, extensions }: Request,
): Promise<Uint8Array> {
  const attribute = sequence([EXTENSION_REQUEST, setOf([sequence(extensions)])]);
  const attributes = extensions.length === 0 ? explicit(0, new Uint8Array()) : implicit(0, setOf([attribute]));
  const info = sequence([integer(0), subject, spki, attributes]);
  return sequence([info, defaultAlgorithm(keyType), bitString(await sign(DEFAULT_HASH[keyType], info))]);
}

/** The key as PKCS#8; the CSR as base64 without line breaks, so that it fits into a command to paste. */
export async function newKeyAndCsr(
  commonName: string,
  keyType: IssuerKeyType = 'p256',
): Promise<{ pkcs8: Uint8Array; csr: string }> {
  const pkcs8 = await newIssuerKey(keyType, 'issuing');
  const subject = distinguishedName({ commonName });
  const csr = await signedRequest(openIssuerKey(keyType, pkcs8), { keyType, subject, extensions: [] });
  return { pkcs8, csr: Buffer.from(csr).toString('base64') };
}

/** The private key is discarded. */
export const throwAwayCsr = async (commonName: string, keyType?: IssuerKeyType): Promise<string> =>
  (await newKeyAndCsr(commonName, keyType)).csr;
