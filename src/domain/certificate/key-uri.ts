// Where a key in a token is: a `pkcs11:` URI (RFC 7512). Strict: an attribute that is not used here, given twice or without
// a value is an error, because a key that is named by less than was written may be another one. A PIN in the URI is
// refused: URIs end up in process lists, shell histories and logs.

export interface KeyUri {
  readonly module: { readonly kind: 'path' | 'name'; readonly value: string };
  /** Label of the token. It or the serial number is there. */
  readonly token: string | null;
  readonly serial: string | null;
  /** Label of the key. It or the id is there. */
  readonly object: string | null;
  /** Hexadecimal, lower case. */
  readonly id: string | null;
  /** An absolute path. Null: as the service is configured. */
  readonly pinFile: string | null;
}

/** Says what is wrong with the URI, without repeating it: it may hold a PIN. */
export class BadKeyUri extends Error {}

const MAX_LENGTH = 1_024;
/** In bytes; the first two are the sizes of the fields of CK_TOKEN_INFO. */
const MAX_BYTES = {
  token: 32,
  serial: 16,
  object: 255,
  id: 64,
  'module-path': 512,
  'module-name': 64,
  'pin-source': 512,
};
type Name = keyof typeof MAX_BYTES;
const PATH_NAMES: readonly string[] = ['token', 'serial', 'object', 'id', 'type'];
const QUERY_NAMES: readonly string[] = ['module-path', 'module-name', 'pin-source'];
/** Characters that need no percent-encoding, in both parts or in one. */
const PATH_VALUE = /^(?:[\w.~:[\]@!$'()*+,=&-]|%[0-9A-Fa-f]{2})+$/;
const QUERY_VALUE = /^(?:[\w.~:[\]@!$'()*+,=/?|-]|%[0-9A-Fa-f]{2})+$/;
const MODULE_NAME = /^[\w-][\w.-]*$/;
const FORGES_LINES = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

export function parseKeyUri(text: string): KeyUri {
  require(text.length <= MAX_LENGTH, `it has more than ${MAX_LENGTH} characters`);
  require(text.startsWith('pkcs11:'), 'it does not begin with pkcs11:');
  const [path = '', query = ''] = splitOnce(text.slice('pkcs11:'.length), '?');
  const given = new Map([...attributesIn(path, ';', PATH_NAMES), ...attributesIn(query, '&', QUERY_NAMES)]);
  const type = given.get('type');
  require(type === undefined || type === 'private', 'its type is not private');
  const value = (name: Name) => textOf(name, given.get(name));
  const uri = {
    module: moduleOf(value('module-path'), value('module-name')),
    ...{ token: value('token'), serial: value('serial'), object: value('object') },
    id: idOf(given.get('id')),
    pinFile: fileOf(value('pin-source')),
  };
  require(uri.token !== null || uri.serial !== null, 'it names no token: add token= or serial=');
  require(uri.object !== null || uri.id !== null, 'it names no key: add object= or id=');
  return uri;
}

/** One form for each key: what it parses from is equal to `uri`. */
export function formatKeyUri({ module, token, serial, object, id, pinFile }: KeyUri): string {
  const path = [
    ...['token', token, 'serial', serial, 'object', object].reduce<string[]>(pairs(encode), []),
    ...(id === null ? [] : [`id=${id.replace(/../g, (byte) => `%${byte}`)}`]),
    'type=private',
  ];
  const query = [`module-${module.kind}`, module.value, 'pin-source', pinFile && `file:${pinFile}`];
  return `pkcs11:${path.join(';')}?${query.reduce<string[]>(pairs(encodeQuery), []).join('&')}`;
}

/** The key within its token. */
export const keyOf = ({ object, id }: KeyUri): Pick<KeyUri, 'object' | 'id'> => ({ object, id });

/** Folds alternating names and values into `name=value`, without those that are null. */
const pairs =
  (encoded: (text: string) => string) =>
  (list: string[], value: string | null, index: number, all: readonly (string | null)[]): string[] =>
    index % 2 === 1 && value !== null ? [...list, `${all[index - 1]}=${encoded(value)}`] : list;

const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
const encodeQuery = (text: string): string => encode(text).replaceAll('%2F', '/').replaceAll('%3A', ':');

function attributesIn(part: string, separator: string, names: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const attribute of part === '' ? [] : part.split(separator)) {
    const [name = '', value] = splitOnce(attribute, '=');
    require(name !== 'pin-value', 'it holds a PIN; put it into a file, and name that: pin-source=file:/path');
    require(names.includes(name), `it has an attribute that is not used here; those are ${names.join(', ')}`);
    require(value !== undefined && value !== '', `its ${name} has no value`);
    require(!found.has(name), `its ${name} is given twice`);
    const allowed = separator === ';' ? PATH_VALUE : QUERY_VALUE;
    require(allowed.test(value), `its ${name} has characters that must be percent-encoded`);
    found.set(name, value);
  }
  return found;
}

function textOf(name: Name, value: string | undefined): string | null {
  if (value === undefined) return null;
  let text: string;
  try {
    text = decodeURIComponent(value);
  } catch {
    throw new BadKeyUri(`its ${name} is not UTF-8`);
  }
  require(new TextEncoder().encode(text).length <=
    MAX_BYTES[name], `its ${name} has more than ${MAX_BYTES[name]} bytes`);
  require(!FORGES_LINES.test(text), `its ${name} has control characters`);
  return text;
}

function idOf(value: string | undefined): string | null {
  if (value === undefined) return null;
  const hex = value.replace(/%(..)|[^%]/g, (one, byte?: string) => byte ?? one.charCodeAt(0).toString(16));
  require(hex.length <= 2 * MAX_BYTES.id, `its id has more than ${MAX_BYTES.id} bytes`);
  return hex.toLowerCase();
}

function moduleOf(path: string | null, name: string | null): KeyUri['module'] {
  if (path !== null) {
    require(name === null, 'it names its module twice: module-path and module-name');
    require(path.startsWith('/'), 'its module-path is not absolute');
    return { kind: 'path', value: path };
  }
  if (name === null) throw new BadKeyUri('it names no module: add ?module-path= or ?module-name=');
  require(MODULE_NAME.test(name), 'its module-name is not a plain name');
  return { kind: 'name', value: name };
}

/** A command after | is not run: it would come from a place that is not the configuration. */
function fileOf(source: string | null): string | null {
  if (source === null) return null;
  const path = source.replace(/^file:(\/\/(?=\/))?/, '');
  require(path.startsWith('/'), 'its pin-source is not a file: write pin-source=file:/path');
  return path;
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}

function require(isTrue: boolean, otherwise: string): asserts isTrue {
  if (!isTrue) throw new BadKeyUri(otherwise);
}
