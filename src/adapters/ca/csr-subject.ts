// Checks the subject of a CSR: string types, characters and lengths of each attribute. Nothing of it is certified.
import { isUtf8 } from 'node:buffer';
import type { Localized } from '../../kernel/locale.ts';
import { DerError, type DerReader } from '../der/reader.ts';
import { TAG } from '../der/writer.ts';

const MAX_ATTRIBUTES = 64;
const MAX_VALUE_CHARACTERS = 1024;

/** Upper bounds of X.520, for common attributes. */
const LENGTHS: ReadonlyMap<string, { readonly name: string; readonly min: number; readonly max: number }> = new Map([
  ['2.5.4.3', { name: 'commonName', min: 1, max: 64 }],
  ['2.5.4.5', { name: 'serialNumber', min: 1, max: 64 }],
  ['2.5.4.6', { name: 'countryName', min: 2, max: 2 }],
  ['2.5.4.7', { name: 'localityName', min: 1, max: 128 }],
  ['2.5.4.8', { name: 'stateOrProvinceName', min: 1, max: 128 }],
  ['2.5.4.10', { name: 'organizationName', min: 1, max: 64 }],
  ['2.5.4.11', { name: 'organizationalUnitName', min: 1, max: 64 }],
  ['1.2.840.113549.1.9.1', { name: 'emailAddress', min: 1, max: 255 }],
]);

type ReadText = (content: Buffer) => string | undefined;

const restricted =
  (allowed: RegExp): ReadText =>
  (content) => {
    const text = content.toString('latin1');
    return allowed.test(text) ? text : undefined;
  };

/** Windows writes non-ASCII text as BMPString. TeletexString and UniversalString are obsolete, and refused. */
const TEXTS: ReadonlyMap<number, ReadText> = new Map([
  [TAG.utf8String, (content) => (isUtf8(content) ? content.toString('utf8') : undefined)],
  [TAG.numericString, restricted(/^[0-9 ]*$/)],
  // * and & are not PrintableString characters, but many programs write wildcards and company names with them.
  [TAG.printableString, restricted(/^[A-Za-z0-9 '()+,\-./:=?*&]*$/)],
  [TAG.ia5String, restricted(/^\p{ASCII}*$/u)],
  [
    TAG.bmpString,
    (content) => (content.length % 2 === 0 ? Buffer.from(content).swap16().toString('utf16le') : undefined),
  ],
]);

/** Returns what is wrong, or undefined. Throws DerError when it is not a subject at all. */
export function findSubjectFault(names: DerReader): Localized | undefined {
  for (let count = 0; !names.isAtEnd; ) {
    const together = names.set();
    do {
      count += 1;
      if (count > MAX_ATTRIBUTES) throw new DerError('too many attributes');
      const attribute = together.sequence();
      const type = attribute.oid();
      const { tag, content } = attribute.primitive();
      attribute.end();
      const fault = findValueFault(type, TEXTS.get(tag)?.(Buffer.from(content)));
      if (fault) return fault;
    } while (!together.isAtEnd);
  }
  return undefined;
}

function findValueFault(type: string, text: string | undefined): Localized | undefined {
  const { name, min, max } = LENGTHS.get(type) ?? { name: type, min: 1, max: MAX_VALUE_CHARACTERS };
  const length = text === undefined ? 0 : Array.from(text).length;
  if (text?.isWellFormed() && !/\p{Cc}/u.test(text) && length >= min && length <= max) return undefined;
  const size = min === max ? `${min}` : `${min}–${max}`;
  return {
    en: `In the subject, ${name} must be text of ${size} characters without control characters, as UTF8String or PrintableString.`,
    zh: `主题中的 ${name} 须为 ${size} 个字符的文本，不含控制字符，类型为 UTF8String 或 PrintableString。`,
  };
}
