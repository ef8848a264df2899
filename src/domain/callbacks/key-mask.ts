// Takes an access key out of a text that somebody else wrote, however that somebody printed it: as it is, escaped for
// JSON, HTML or a URL, in hexadecimal or base64, wrapped or spaced out. A key is printable ASCII. One pass, and no text is looked at twice: the
// somebody may mean harm, so the work is at most the length of the text times that of the key.

const MASK = '[access_key]';
/** A shorter beginning of the key gives nothing away that a guess would not. */
const MIN_FRAGMENT = 4;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** One character of a way to write the key: itself, and what may stand for it. */
interface Glyph {
  readonly plain: string;
  /** In small letters; begins with %, \ or &. */
  readonly escapes: readonly string[];
}
type Script = readonly Glyph[];

export function withoutKey(text: string, key: string): string {
  const scripts = scriptsOf(key);
  let result = '';
  let copied = 0;
  for (let at = 0; at < text.length; at += 1) {
    const end = Math.max(...scripts.map((script) => endOf(text, at, script)));
    if (end < 0) continue;
    result += text.slice(copied, at) + MASK;
    copied = end;
    at = end - 1;
  }
  return result + text.slice(copied);
}

/** Where the key that begins here ends, or the text in the middle of it; −1 when none begins here. */
function endOf(text: string, from: number, script: Script): number {
  let at = from;
  for (const glyph of script) {
    const isFragment = at - from >= MIN_FRAGMENT;
    let length = lengthOf(text, at, glyph);
    // What was wrapped, or is UTF-16 read as UTF-8, has something between its characters. The first is where it begins.
    for (let gap = 0; length === 0 && at > from && gap < MAX_GAP && IGNORED.test(text[at] ?? ''); gap += 1) {
      at += 1;
      length = lengthOf(text, at, glyph);
    }
    if (at >= text.length) return isFragment ? at : -1;
    // Half of an escape at the end of the text says as much as the whole.
    if (length === 0) return isFragment && isBegun(text.slice(at, at + MAX_ESCAPE), glyph) ? text.length : -1;
    at += length;
  }
  return at;
}

const MAX_ESCAPE = 8;
const MAX_GAP = 4;
const IGNORED = /[\p{C}\p{Z}\s]/u;

function lengthOf(text: string, at: number, { plain, escapes }: Glyph): number {
  const first = text[at];
  if (first === '%' || first === '\\' || first === '&') {
    const rest = text.slice(at, at + MAX_ESCAPE).toLowerCase();
    const written = escapes.find((one) => rest.startsWith(one));
    if (written) return written.length;
  }
  // Forms write a blank as a plus.
  return first === plain || (plain === ' ' && first === '+') ? 1 : 0;
}

const isBegun = (rest: string, { escapes }: Glyph): boolean =>
  escapes.some((one) => one.length > rest.length && one.startsWith(rest.toLowerCase()));

function scriptsOf(key: string): Script[] {
  const base64 = base64sOf(key);
  const plain = (text: string): Script => Array.from(text, (one) => ({ plain: one, escapes: [] }));
  const encoded = [
    hexOf(key),
    hexOf(key).toUpperCase(),
    ...base64,
    ...base64.map((one) => one.replaceAll('+', '-').replaceAll('/', '_')),
  ];
  return [
    Array.from(key, (one) => ({ plain: one, escapes: escapesOf(one) })),
    // Of a very short key, two characters of base64 would be found everywhere.
    ...encoded.filter(({ length }) => length >= MIN_FRAGMENT).map(plain),
  ];
}

function escapesOf(character: string): string[] {
  const [code, hex] = [character.charCodeAt(0), hexOf(character)];
  const entity = ENTITIES[character];
  return [
    ...[`%${hex}`, `\\u00${hex}`, `\\x${hex}`, `&#x${hex};`, `&#${code};`, `&#0${code};`],
    ...(entity ? [entity] : []),
    `\\${character.toLowerCase()}`,
  ];
}

/** Alone, and wherever in a longer text it begins: then without the characters that its neighbours have a part in. */
const base64sOf = (key: string): string[] => [
  btoa(key).replace(/=+$/, ''),
  ...[0, 1, 2].map((before) => {
    const whole = btoa(' '.repeat(before) + key).replace(/=+$/, '');
    const isShared = (before + key.length) % 3 !== 0;
    return whole.slice(Math.ceil((before * 4) / 3), isShared ? -1 : undefined);
  }),
];

const hexOf = (text: string): string =>
  Array.from(text, (character) => character.charCodeAt(0).toString(16).padStart(2, '0')).join('');
