// The two supported languages, and Accept-Language negotiation. Texts are for people; programs use error codes.

export const LOCALES = ['en', 'zh-CN'] as const;
export type Locale = (typeof LOCALES)[number];

/** A text in every supported language. A missing translation does not compile. */
export type Localized = { readonly en: string; readonly zh: string };

export const inLocale = (text: Localized, locale: Locale): string => (locale === 'zh-CN' ? text.zh : text.en);

/** Bounds the work that a hostile header can cause. */
const MAX_RANGES = 16;

/** The supported language with the highest quality in an Accept-Language header; undefined if it accepts none. */
export function preferredLocale(header: string | undefined): Locale | undefined {
  let best: { locale: Locale; quality: number } | undefined;
  for (const range of header?.split(',', MAX_RANGES) ?? []) {
    const [tag = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const quality = weight === undefined ? 1 : Number(weight);
    const locale = /^zh(-|$)/.test(tag) ? 'zh-CN' : /^en(-|$)/.test(tag) ? 'en' : undefined;
    if (locale && quality > 0 && quality <= 1 && quality > (best?.quality ?? 0)) best = { locale, quality };
  }
  return best?.locale;
}
