// Texts of the console in both languages. Each page has a table of its own; a missing translation does not compile.
import { signal } from '@preact/signals';

export type Language = 'en' | 'zh';
const STORED = 'reseal.language';

export const language = signal<Language>(initial());

function initial(): Language {
  const chosen = localStorage.getItem(STORED) ?? navigator.language;
  return chosen.startsWith('zh') ? 'zh' : 'en';
}

export function chooseLanguage(chosen: Language): void {
  localStorage.setItem(STORED, chosen);
  language.value = chosen;
}

/** As Accept-Language and `lang` want it. */
export const languageTag = (): string => (language.value === 'zh' ? 'zh-CN' : 'en');

type Values = Readonly<Record<string, string | number>>;

/** A function from key to text. `{name}` in a text is replaced by the value of that name. */
export function texts<Key extends string>(
  table: Readonly<Record<Language, Readonly<Record<Key, string>>>>,
): (key: Key, values?: Values) => string {
  return (key, values = {}) =>
    table[language.value][key].replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}
