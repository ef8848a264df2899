// Masks an access key in text written by a receiver: plain, escaped for JSON, HTML or a URL, in hexadecimal or base64,
// wrapped or spaced out. Keys are printable ASCII. One pass without backtracking, because the receiver may be hostile:
// the work is at most length of the text times length of the key.

const MASK = '[access_key]';
/** A shorter prefix of the key reveals too little to matter. */
const MIN_FRAGMENT = 4;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** One character of an encoding of the key. */
interface EncodedChar {
  readonly plain: string;
  /** In lower case; each begins with %, \ or &. */
  readonly escapes: readonly string[];
}
type Encoding = readonly EncodedChar[];

export function maskKey(text: string, key: string): string {
  const encodings = encodingsOf(key);
  let result = '';
  let copied = 0;
  for (let at = 0; at < text.length; at += 1) {
    const end = Math.max(...encodings.map((encoding) => endOf(text, at, encoding)));
    if (end < 0) continue;
    result += text.slice(copied, at) + MASK;
    copied = end;
    at = end - 1;
  }
  return result + text.slice(copied);
}

/** The end of the key that begins at `from`, or the end of the text if it cuts the key off; −1 if there is no key. */
function endOf(text: string, from: number, encoding: Encoding): number {
  let at = from;
  for (const char of encoding) {
    const isFragment = at - from >= MIN_FRAGMENT;
    let length = lengthOf(text, at, char);
    // Wrapped text, and UTF-16 read as UTF-8, have ignorable characters in between; not before the first one.
    for (let gap = 0; length === 0 && at > from && gap < MAX_GAP && IGNORED.test(text[at] ?? ''); gap += 1) {
      at += 1;
      length = lengthOf(text, at, char);
    }
    if (at >= text.length) return isFragment ? at : -1;
    // An escape that the end of the text cuts off reveals as much as a whole one.
    if (length === 0) return isFragment && isCutEscape(text.slice(at, at + MAX_ESCAPE), char) ? text.length : -1;
    at += length;
  }
  return at;
}

const MAX_ESCAPE = 8;
const MAX_GAP = 4;
const IGNORED = /[\p{C}\p{Z}\s]/u;

function lengthOf(text: string, at: number, { plain, escapes }: EncodedChar): number {
  const first = text[at];
  if (first === '%' || first === '\\' || first === '&') {
    const rest = text.slice(at, at + MAX_ESCAPE).toLowerCase();
    const written = escapes.find((one) => rest.startsWith(one));
    if (written) return written.length;
  }
  // Form encoding writes a blank as a plus.
  return first === plain || (plain === ' ' && first === '+') ? 1 : 0;
}

const isCutEscape = (rest: string, { escapes }: EncodedChar): boolean =>
  escapes.some((one) => one.length > rest.length && one.startsWith(rest.toLowerCase()));

function encodingsOf(key: string): Encoding[] {
  const base64 = base64FormsOf(key);
  const plain = (text: string): Encoding => Array.from(text, (one) => ({ plain: one, escapes: [] }));
  const encoded = [
    hexOf(key),
    hexOf(key).toUpperCase(),
    ...base64,
    ...base64.map((one) => one.replaceAll('+', '-').replaceAll('/', '_')),
  ];
  return [
    Array.from(key, (one) => ({ plain: one, escapes: escapesOf(one) })),
    // Two characters of base64, from a very short key, would match everywhere.
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

/** On its own, and at each alignment within a longer text, without the characters that also encode its neighbours. */
const base64FormsOf = (key: string): string[] => [
  btoa(key).replace(/=+$/, ''),
  ...[0, 1, 2].map((before) => {
    const whole = btoa(' '.repeat(before) + key).replace(/=+$/, '');
    const isShared = (before + key.length) % 3 !== 0;
    return whole.slice(Math.ceil((before * 4) / 3), isShared ? -1 : undefined);
  }),
];

const hexOf = (text: string): string =>
  Array.from(text, (character) => character.charCodeAt(0).toString(16).padStart(2, '0')).join('');
