// The account is the tenant: it owns orders, keys and callbacks, and no data crosses from one account to another.

import { LOCALES, type Locale } from '../../kernel/locale.ts';
import { invalid, Refusal } from '../errors.ts';
import type { AccountId } from '../ids.ts';
import type { AccountUsage } from './quota.ts';

export const ACCOUNT_KINDS = ['standard', 'managed_pki'] as const;
export type AccountKind = (typeof ACCOUNT_KINDS)[number];

export interface Account extends AccountUsage {
  readonly id: AccountId;
  readonly name: string;
  readonly kind: AccountKind;
  /** Default language: callback messages, and errors of requests without Accept-Language. */
  readonly locale: Locale;
  readonly createdAt: number;
  /** Since when the operator has suspended it; null unless it is. */
  readonly suspendedAt: number | null;
}

/** Call only after a secret of the account matched: its state must not leak to other callers. */
export function requireActive({ suspendedAt }: Account): void {
  if (suspendedAt !== null) throw new Refusal('account_suspended');
}

export type AccountChange = { readonly name?: string; readonly locale?: Locale };

export const MAX_ACCOUNT_NAME = 200;

/**
 * Line breaks, control characters and bidirectional overrides could forge lines in a terminal or a log. Joiners are
 * allowed: Persian words and family emoji need them.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u;

export function accountName(text: string): string {
  const name = text.trim();
  // The length is that of what was sent, as the document says; blanks around it are not kept.
  if (name === '' || [...text].length > MAX_ACCOUNT_NAME || UNPRINTABLE.test(name)) {
    throw invalid(
      'name',
      `A name has 1 to ${MAX_ACCOUNT_NAME} printable characters.`,
      `名称须为 1 至 ${MAX_ACCOUNT_NAME} 个可打印字符。`,
    );
  }
  return name;
}

/** Validates a change request. Unknown fields are ignored, but a request that changes nothing is refused. */
export function accountChange(request: { name?: string; locale?: string }): AccountChange {
  if (request.name === undefined && request.locale === undefined) {
    throw new Refusal('invalid_parameters', {
      reason: {
        en: 'Nothing to change: send name, locale or both.',
        zh: '没有要修改的内容：请发送 name 或 locale，或两者都发送。',
      },
    });
  }
  return {
    ...(request.name !== undefined && { name: accountName(request.name) }),
    ...(request.locale !== undefined && { locale: accountLocale(request.locale) }),
  };
}

function accountLocale(text: string): Locale {
  const locale = LOCALES.find((known) => known === text);
  if (locale) return locale;
  throw invalid('locale', `Choose one of ${LOCALES.join(', ')}.`, `可选值：${LOCALES.join('、')}。`);
}
