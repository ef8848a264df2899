// Certificate signing requests on new keys, for the sandbox: callers bring their own.
import { bitString, explicit, integer, sequence } from '../der/writer.ts';
import { newIssuerKey, openIssuerKey } from './issuer-key.ts';
import { distinguishedName, SIGNATURE_ALGORITHMS } from './to-be-signed.ts';

const HASHES = { p256: 'sha256', p384: 'sha384', rsa: 'sha256', sm2: 'sm3' } as const;
export type SandboxKeyType = keyof typeof HASHES;

/** The key in PKCS#8; the CSR in base64 without line breaks, which is how it fits into a command to paste. */
export async function newKeyAndCsr(
  commonName: string,
  keyType: SandboxKeyType = 'p256',
): Promise<{ pkcs8: Uint8Array; csr: string }> {
  const pkcs8 = await newIssuerKey(keyType, 'issuing');
  const key = openIssuerKey(keyType, pkcs8);
  const noAttributes = explicit(0, new Uint8Array());
  const info = sequence([integer(0), distinguishedName({ commonName }), key.spki, noAttributes]);
  const algorithm = SIGNATURE_ALGORITHMS[keyType][HASHES[keyType]]!;
  const signature = bitString(await key.sign(HASHES[keyType], info));
  return { pkcs8, csr: Buffer.from(sequence([info, algorithm, signature])).toString('base64') };
}

/** On a key that nobody has. */
export const throwAwayCsr = async (commonName: string, keyType?: SandboxKeyType): Promise<string> =>
  (await newKeyAndCsr(commonName, keyType)).csr;
