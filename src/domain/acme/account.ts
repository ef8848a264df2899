// ACME accounts: a key, bound to a tenant by an external account binding.
import type { Account } from '../access/account.ts';
import type { Actor } from '../access/credential.ts';
import type { AccountId } from '../ids.ts';
import type { Binding } from './binding.ts';
import { requireUsableBinding, SUSPENDED } from './binding.ts';
import { AcmeProblem, unauthorized } from './problem.ts';

/** `deactivated` by its holder, `revoked` by the operator; both are final. */
export type AcmeAccountStatus = 'valid' | 'deactivated' | 'revoked';

export interface AcmeAccount {
  readonly id: string;
  /** The tenant. */
  readonly accountId: AccountId;
  readonly bindingId: string;
  readonly status: AcmeAccountStatus;
  /** RFC 7638, of the key: part of every key authorization. */
  readonly thumbprint: string;
  /** SubjectPublicKeyInfo of the key, DER. */
  readonly spki: Uint8Array;
  /** URLs, `mailto:` only. */
  readonly contacts: readonly string[];
  readonly termsAgreedAt: number | null;
  readonly createdAt: number;
}

/** An ACME account with what its requests depend on. */
export interface BoundAccount {
  readonly account: AcmeAccount;
  readonly binding: Binding;
  readonly tenant: Account;
}

/** Call only after the signature was verified: the state must not leak to others. */
export function requireUsableAccount({ account, binding, tenant }: BoundAccount, now: number): void {
  if (account.status !== 'valid') throw new AcmeProblem('accountDeactivated', ENDED[account.status]);
  if (tenant.suspendedAt !== null) throw unauthorized(SUSPENDED.en, SUSPENDED.zh);
  requireUsableBinding(binding, now);
}

/** Never throws. Whether what it asked for before may still be issued. */
export function isUsableAccount(bound: BoundAccount, now: number): boolean {
  try {
    requireUsableAccount(bound, now);
    return true;
  } catch (error) {
    if (error instanceof AcmeProblem) return false;
    throw error;
  }
}

const ENDED = {
  deactivated: {
    en: 'This ACME account was deactivated, which is final. Register a new account with a new key.',
    zh: '该 ACME 账户已停用且不可恢复，请使用新密钥注册新账户。',
  },
  revoked: {
    en: 'The operator has disabled this ACME account. Ask the operator for a new binding, and register with a new key.',
    zh: '运营方已停用该 ACME 账户，请向运营方申请新的绑定，并使用新密钥注册。',
  },
} as const;

/** Who acted, for the audit log. */
export const acmeActor = ({ account }: Pick<BoundAccount, 'account'>, requestId: string | null): Actor => ({
  accountId: account.accountId,
  actor: `acme:${account.id}`,
  requestId,
});

const MAX_CONTACTS = 10;
const MAX_ADDRESS = 254;
/** One address, without header fields: what a mail program would take it for is bounded. */
const MAILTO = /^mailto:[^\s@,;?&%<>"'()[\]\\]+@([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/i;

/** The contacts of a request; undefined if it names none. */
export function parseContacts(value: unknown): string[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || value.length > MAX_CONTACTS || value.some((one) => typeof one !== 'string')) {
    throw new AcmeProblem('invalidContact', {
      en: `contact is a list of at most ${MAX_CONTACTS} mailto: addresses.`,
      zh: `contact 须为列表，最多 ${MAX_CONTACTS} 个 mailto: 地址。`,
    });
  }
  return value.map(parseContact);
}

function parseContact(text: string): string {
  if (!/^mailto:/i.test(text)) {
    throw new AcmeProblem('unsupportedContact', {
      en: 'A contact must be a mailto: address; no other scheme is supported.',
      zh: '联系方式须为 mailto: 地址，不支持其他协议。',
    });
  }
  if (text.length <= MAX_ADDRESS + 'mailto:'.length && MAILTO.test(text)) return text;
  throw new AcmeProblem('invalidContact', {
    en: 'A contact must be mailto: with one address such as admin@example.com, and nothing after it.',
    zh: '联系方式须为 mailto: 加一个邮箱地址（如 admin@example.com），其后不得有其他内容。',
  });
}
