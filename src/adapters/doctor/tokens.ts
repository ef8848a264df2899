// Checks that every issuer key in a token can be used: the module loads, the token takes the PIN, and the key signs for its
// certificate. What it signs is a random text.
import { X509Certificate } from 'node:crypto';
import { type Issuer, NotSigned } from '../../domain/certificate/authority.ts';
import { parseKeyUri } from '../../domain/certificate/key-uri.ts';
import type { Diagnostic } from '../../kernel/problem.ts';
import type { OpenTokenKeys } from '../hsm/token-keys.ts';

const check = 'tokens';

type TokenIssuer = Pick<Issuer, 'id' | 'purposes' | 'certificate' | 'keyUri'>;

export async function checkTokens(
  issuers: readonly TokenIssuer[],
  keys: Pick<OpenTokenKeys, 'describe' | 'prove'>,
): Promise<Diagnostic> {
  const held = issuers.filter(({ keyUri }) => keyUri !== undefined);
  if (held.length === 0) return { check, state: 'ok', text: 'no issuer key is in a token' };
  const faults: string[] = [];
  const extractable: string[] = [];
  for (const issuer of held) {
    const { fault, isExtractable } = await tried(issuer, keys);
    if (fault !== undefined) faults.push(`issuer ${issuer.id}: ${fault}`);
    if (isExtractable) extractable.push(issuer.id);
  }
  if (faults.length > 0) {
    const remedy = 'See docs/hsm.md. Until then its orders are refused as service_busy, and its CRLs are not renewed.';
    return { check, state: 'problem', text: faults.join('; '), remedy };
  }
  if (extractable.length > 0) {
    const text = `the keys of ${extractable.join(', ')} can leave their token`;
    return { check, state: 'warning', text, remedy: 'Make keys in the token: reseal ca csr --key-uri' };
  }
  return { check, state: 'ok', text: `${held.length} issuer keys sign in their tokens` };
}

async function tried(
  { keyUri, certificate }: TokenIssuer,
  keys: Pick<OpenTokenKeys, 'describe' | 'prove'>,
): Promise<{ fault?: string; isExtractable: boolean }> {
  try {
    const uri = parseKeyUri(keyUri ?? '');
    const { keyType, isExtractable } = await keys.describe(uri);
    const isKeyOf = await keys.prove(uri, keyType);
    const isOwn = isKeyOf(new X509Certificate(certificate).publicKey);
    return isOwn ? { isExtractable } : { fault: 'the key in the token is another one', isExtractable };
  } catch (error) {
    if (!(error instanceof NotSigned)) throw error;
    return { fault: error.cause instanceof Error ? error.cause.message : 'no answer', isExtractable: false };
  }
}
