// Takes an access key out of a text that somebody else wrote, however that somebody printed it: as it is, escaped for
// JSON, HTML or a URL, in hexadecimal or base64. A key is printable ASCII.

const MASK = '[access_key]';
/** A shorter beginning of the key gives nothing away that a guess would not. */
const MIN_FRAGMENT = 4;

const ENTITIES: Readonly<Record<string, readonly string[]>> = {
  '&': ['&amp;'],
  '<': ['&lt;'],
  '>': ['&gt;'],
  '"': ['&quot;'],
  "'": ['&apos;'],
};

export function withoutKey(text: string, key: string): string {
  const encoded = [hexOf(key), base64Of(key), base64Of(key).replaceAll('+', '-').replaceAll('/', '_')];
  const scripts = [[...key].map(formsOf), ...encoded.map((one) => [...one].map(insensitive))];
  return scripts.reduce(withoutScript, text.replaceAll(key, MASK));
}

/** Every place where the forms follow each other; also at the end of the text, which may be cut off in the middle. */
function withoutScript(text: string, script: readonly (readonly string[])[]): string {
  let result = '';
  let copied = 0;
  for (let at = 0; at < text.length; at += 1) {
    const end = endOf(text, at, script);
    if (end === undefined) continue;
    result += text.slice(copied, at) + MASK;
    copied = end;
    at = end - 1;
  }
  return result + text.slice(copied);
}

function endOf(text: string, from: number, script: readonly (readonly string[])[]): number | undefined {
  let at = from;
  for (const forms of script) {
    const isFragment = at - from >= MIN_FRAGMENT;
    if (at >= text.length) return isFragment ? at : undefined;
    const form = forms.find((one) => text.startsWith(one, at));
    // Half of an escape at the end of the text says as much as the whole.
    if (form === undefined) return isFragment && isBegun(text.slice(at), forms) ? text.length : undefined;
    at += form.length;
  }
  return at;
}

const isBegun = (rest: string, forms: readonly string[]): boolean => forms.some((form) => form.startsWith(rest));

/** The longest first: `&amp;` begins as `&` does. */
function formsOf(character: string): string[] {
  const code = character.charCodeAt(0);
  const hex = hexOf(character);
  const forms = [`%${hex}`, `\\u00${hex}`, `\\x${hex}`, `&#x${hex};`].flatMap((form) => [form, form.toUpperCase()]);
  return [
    ...forms,
    // Of the escapes above only the digits are written in capitals.
    ...[
      `\\u00${hex.toUpperCase()}`,
      `\\x${hex.toUpperCase()}`,
      `&#x${hex.toUpperCase()};`,
      `&#${code};`,
      `&#0${code};`,
    ],
    ...(ENTITIES[character] ?? []),
    `\\${character}`,
    ...(character === ' ' ? ['+'] : []),
    character,
  ];
}

const insensitive = (character: string): string[] => [character.toLowerCase(), character.toUpperCase()];

const hexOf = (text: string): string =>
  Array.from(text, (character) => character.charCodeAt(0).toString(16).padStart(2, '0')).join('');

const base64Of = (text: string): string => btoa(text).replace(/=+$/, '');
