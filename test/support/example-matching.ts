// Compares a recorded example with what the service answers now. Ids, keys, signatures and dates differ from run to run;
// each must stand for the same one everywhere in the session, so that examples fit each other.
import assert from 'node:assert/strict';
import type { Json } from './document.ts';

/** What differs from run to run, in texts. */
const VOLATILE = new RegExp(
  [
    /(?<pem>-----BEGIN [A-Z ]+-----[\s\S]+?-----END [A-Z ]+-----)/,
    /(?<time>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z)/,
    /(?<hex>\b(?:[0-9a-f]{32,}|[0-9A-F]{32,})\b)/,
    /(?<id>\b[0-7][0-9a-hjkmnp-tv-z]{25}\b)/,
    // Of 32 bytes, or of many; no word is as long without an underscore.
    /(?<base64>(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{80,}={0,2}))/,
    // Of 32 bytes, for use in URLs.
    /(?<token>(?<![\w+/-])[\w-]{43}(?![\w+/=-]))/,
    /(?<unix>\b\d{10}\b)/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
);

/** Measured, or counted from a real clock. */
const MEASURED = /^(ms|resolve|connect|tls|request|response|crl_number|certificate_expires_in_days)$/;

export class Matching {
  readonly #known = new Map<string, string>();
  readonly #taken = new Map<string, string>();

  /** Asserts that both are the same, apart from what differs from run to run. */
  require(recorded: Json, actual: Json, what: string): void {
    if (typeof recorded === 'string' && typeof actual === 'string') this.#requireText(recorded, actual, what);
    else if (recorded === null || typeof recorded !== 'object') assert.deepEqual(actual, recorded, what);
    else this.#requireFields(recorded, actual, what);
  }

  #requireFields(recorded: Json, actual: Json, what: string): void {
    assert.equal(Array.isArray(actual), Array.isArray(recorded), what);
    assert.deepEqual(Object.keys(actual ?? {}).sort(), Object.keys(recorded).sort(), what);
    for (const [key, value] of Object.entries(recorded)) {
      const isMeasured = MEASURED.test(key) && typeof value === 'number';
      if (isMeasured) assert.equal(typeof actual[key], 'number', `${what}.${key}`);
      else this.require(value, actual[key], `${what}.${key}`);
    }
  }

  #requireText(recorded: string, actual: string, what: string): void {
    assert.equal(masked(actual), masked(recorded), what);
    const [before, now] = [recorded.match(VOLATILE) ?? [], actual.match(VOLATILE) ?? []];
    for (const [index, was] of before.entries()) {
      const is = now[index] ?? '';
      assert.equal(this.#known.get(was) ?? is, is, `${what}: ${was} stood for another value before`);
      assert.equal(this.#taken.get(is) ?? was, was, `${what}: ${is} had another name before`);
      this.#known.set(was, is);
      this.#taken.set(is, was);
    }
  }
}

const masked = (text: string): string =>
  text.replace(VOLATILE, (...all) => {
    const groups = all.at(-1) as Record<string, string | undefined>;
    return `<${Object.keys(groups).find((kind) => groups[kind] !== undefined)}>`;
  });
