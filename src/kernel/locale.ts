// The two languages Reseal speaks, and how a caller's wish is read. Texts are for people: programs use codes.

export const LOCALES = ['en', 'zh-CN'] as const;
export type Locale = (typeof LOCALES)[number];

/** One text in every language. A missing translation does not compile. */
export type Localized = { readonly en: string; readonly zh: string };

export const inLocale = (text: Localized, locale: Locale): string => (locale === 'zh-CN' ? text.zh : text.en);

// A header of ten thousand ranges is an attack, not a preference.
const MAX_RANGES = 16;

/** The supported language an Accept-Language header likes best; undefined when it likes none of ours. */
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
