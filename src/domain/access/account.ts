// Whose orders, keys and callbacks these are. An account is the tenant: nothing crosses from one to another.

import { LOCALES, type Locale } from '../../kernel/locale.ts';
import { invalid, Refusal } from '../errors.ts';
import type { AccountId } from '../ids.ts';

export const ACCOUNT_KINDS = ['standard', 'managed_pki'] as const;
export type AccountKind = (typeof ACCOUNT_KINDS)[number];

export interface Account {
  readonly id: AccountId;
  readonly name: string;
  readonly kind: AccountKind;
  /** The language of texts nobody asked for in another: callback messages, errors without Accept-Language. */
  readonly locale: Locale;
  readonly createdAt: number;
}

export type AccountChange = { readonly name?: string; readonly locale?: Locale };

export const MAX_ACCOUNT_NAME = 200;

/**
 * Line breaks, control characters and those that turn the direction of writing would forge lines in a terminal or a
 * log. Joiners stay: Persian words and family emoji need them.
 */
const FORGING = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u;

export function accountName(text: string): string {
  const name = text.trim();
  if (name === '' || [...name].length > MAX_ACCOUNT_NAME || FORGING.test(name)) {
    throw invalid(
      'name',
      `A name has 1 to ${MAX_ACCOUNT_NAME} printable characters.`,
      `名称须为 1 至 ${MAX_ACCOUNT_NAME} 个可打印字符。`,
    );
  }
  return name;
}

/** What a request may change about its account. Unlike an unknown field, an empty wish is an error worth telling. */
export function accountChange(wish: { name?: string; locale?: string }): AccountChange {
  if (wish.name === undefined && wish.locale === undefined) {
    throw new Refusal('invalid_parameters', {
      reason: {
        en: 'Nothing to change: send name, locale or both.',
        zh: '没有要修改的内容：请发送 name 或 locale，或两者都发送。',
      },
    });
  }
  return {
    ...(wish.name !== undefined && { name: accountName(wish.name) }),
    ...(wish.locale !== undefined && { locale: accountLocale(wish.locale) }),
  };
}

export function accountLocale(text: string): Locale {
  const locale = LOCALES.find((known) => known === text);
  if (locale) return locale;
  throw invalid('locale', `Choose one of ${LOCALES.join(', ')}.`, `可选值：${LOCALES.join('、')}。`);
}
