// Creates CSRs on new keys, for the sandbox: real callers bring their own.
import type { IssuerKeyType } from '../../domain/certificate/authority.ts';
import { bitString, explicit, integer, sequence } from '../der/writer.ts';
import { newIssuerKey, openIssuerKey } from './issuer-key.ts';
import { DEFAULT_HASH, defaultAlgorithm, distinguishedName } from './to-be-signed.ts';

/** The key as PKCS#8; the CSR as base64 without line breaks, so that it fits into a command to paste. */
export async function newKeyAndCsr(
  commonName: string,
  keyType: IssuerKeyType = 'p256',
): Promise<{ pkcs8: Uint8Array; csr: string }> {
  const pkcs8 = await newIssuerKey(keyType, 'issuing');
  const key = openIssuerKey(keyType, pkcs8);
  const noAttributes = explicit(0, new Uint8Array());
  const info = sequence([integer(0), distinguishedName({ commonName }), key.spki, noAttributes]);
  const signature = bitString(await key.sign(DEFAULT_HASH[keyType], info));
  return { pkcs8, csr: Buffer.from(sequence([info, defaultAlgorithm(keyType), signature])).toString('base64') };
}

/** The private key is discarded. */
export const throwAwayCsr = async (commonName: string, keyType?: IssuerKeyType): Promise<string> =>
  (await newKeyAndCsr(commonName, keyType)).csr;
