// The session of this browser: of an account's key, or of an operator.
import { signal } from '@preact/signals';
import { call, isEnd, Problem, signedOut } from './api.ts';
import { replaceAddress } from './router.ts';

export interface Session {
  readonly kind: 'account' | 'operator';
  readonly account?: { readonly id: string; readonly name: string };
  readonly key_id?: string;
  readonly permissions?: readonly string[];
  readonly operator?: { readonly name: string; readonly role: 'view' | 'act' };
  readonly expires_at: string;
}

/** undefined until the service was asked, null without a session. */
export const session = signal<Session | null | undefined>(undefined);

/** Throws a Problem unless the service says whether there is a session. */
export async function readSession(): Promise<void> {
  try {
    const found = await call<Session | { readonly kind: 'none' }>('GET', 'session');
    session.value = found.kind === 'none' ? null : found;
    signedOut.value = false;
  } catch (error) {
    if (!(error instanceof Problem) || !isEnd(error)) throw error;
    session.value = null;
  }
}

export async function signIn(keyId: string, secret: string): Promise<void> {
  await call('POST', 'session', { body: { key_id: keyId, secret } });
  await readSession();
}

const linkToken = (): string | undefined => /^#login=([\w-]+)$/.exec(location.hash)?.[1];
export const hasLink = (): boolean => linkToken() !== undefined;

/** Takes the single-use token out of the address before anything else, so that no history or screenshot keeps it. */
export async function redeemLink(): Promise<boolean> {
  const token = linkToken();
  if (token === undefined) return false;
  replaceAddress([]);
  await call('POST', 'operator-session', { body: { token } });
  return true;
}

export async function signOut(): Promise<void> {
  await call('DELETE', 'session').catch((error) => {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
  });
  session.value = null;
}
