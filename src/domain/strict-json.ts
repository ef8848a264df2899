// JSON whose objects have each key once. A proxy, a log or a signer may read the first value of a repeated key, and JSON.parse
// takes the last. Deep nesting and a great many parts are refused before they are parsed: such a text takes many times as
// long as any other.
import { Refusal } from './errors.ts';

const MAX_DEPTH = 64;
/** Strings, objects and arrays: a hundred times what any operation needs. */
const MAX_PARTS = 10_000;

/** Returns a key that one object has twice, if there is one. Of a text that is no JSON it may return anything. */
export function repeatedKey(text: string): string | undefined {
  /** The keys of the objects that are open; null for an array. */
  const open: (Set<string> | null)[] = [];
  let repeated: string | undefined;
  let parts = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '{' || character === '[') {
      if (open.push(character === '{' ? new Set() : null) > MAX_DEPTH) throw tooDeep();
      if (++parts > MAX_PARTS) throw tooMany();
    } else if (character === '}' || character === ']') open.pop();
    else if (character === '"') {
      if (++parts > MAX_PARTS) throw tooMany();
      const end = endOfString(text, at);
      if (isBeforeColon(text, end)) {
        const key = keyIn(text.slice(at, end + 1));
        const keys = open.at(-1);
        if (keys?.has(key)) repeated ??= key;
        keys?.add(key);
      }
      at = end;
    }
  }
  return repeated;
}

/** The quote that ends the string: one after an even number of backslashes. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text[before - 1] === '\\') before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return text.length;
}

function isBeforeColon(text: string, end: number): boolean {
  let next = end + 1;
  while (next < text.length && ' \t\n\r'.includes(text[next] ?? '')) next += 1;
  return text[next] === ':';
}

function keyIn(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted);
  } catch {
    return quoted;
  }
}

const tooDeep = () =>
  new Refusal('invalid_parameters', {
    reason: {
      en: `The body nests deeper than ${MAX_DEPTH} levels. No field of this service does.`,
      zh: `请求体嵌套超过 ${MAX_DEPTH} 层，本服务没有这样的字段。`,
    },
  });

const tooMany = () =>
  new Refusal('invalid_parameters', {
    reason: {
      en: `The body has more than ${MAX_PARTS} strings, objects and arrays. No operation needs as many.`,
      zh: `请求体中的字符串、对象和数组超过 ${MAX_PARTS} 个，没有操作需要这么多。`,
    },
  });
