// The products an operator adds, read from JSON. Strict where the API is lenient: a misspelt key of a product would
// silently sell something else, so unknown keys are errors, only the grace period may be left out, and every problem
// is listed at once with its place and what to do. Reading the file itself happens elsewhere.
import type { Localized } from '../../kernel/locale.ts';
import { PRODUCT_KINDS, TRUSTS } from '../certificate/authority.ts';
import { DCV_METHODS, DCV_SCOPES } from '../certificate/order.ts';
import { KEY_TYPES } from '../certificate/public-key.ts';
import { SIGN_HASHES } from '../certificate/sign-hash.ts';
import { conflictsOf } from './product-rules.ts';
import {
  CERTIFICATE_FORMS,
  CSR_RULES,
  CURVE_BITS,
  KEY_SOURCES,
  type KeyRule,
  MAX_RSA_BITS,
  NAME_CHANGES,
  OFFERED_DCV_METHODS,
  OFFERED_KEY_SOURCES,
  OFFERED_SIGN_HASHES,
  PRODUCTS,
  type Product,
} from './products.ts';

export class ProductsError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The products file has ${problems.length} problem(s):\n${problems.join('\n')}`);
    this.problems = problems;
  }
}

/** The products of `{ "products": [ … ] }`, which stand beside the built-in ones; or a ProductsError with every problem. */
export function parseProducts(json: unknown): Product[] {
  const problems: string[] = [];
  const report: Report = (path, problem) => problems.push(`${path}: ${problem}`);
  const file = objectWith(['products'], json, 'file', report);
  const products = file && listOf(aProduct)(file.products, 'products', report);
  if (file && Array.isArray(file.products)) requireUntaken(file.products, report);
  if (products === undefined || problems.length > 0) throw new ProductsError(problems);
  return products;
}

function requireUntaken(rows: readonly unknown[], report: Report): void {
  const taken = new Set<unknown>(PRODUCTS.map(({ id }) => id));
  for (const [index, row] of rows.entries()) {
    if (!isObject(row) || typeof row.id !== 'string') continue;
    if (taken.has(row.id)) report(`products[${index}].id`, `${excerpt(row.id)} is taken already; choose another id.`);
    taken.add(row.id);
  }
}

type Report = (path: string, problem: string) => void;
/** What stands there; undefined after a problem was reported. */
type Read<T> = (value: unknown, path: string, report: Report) => T | undefined;

const MAX_ID = 64;
const MAX_TEXT = 200;
const MAX_DAYS = 3650;
const MAX_GRACE_HOURS = 720;
const MIN_RSA_BITS = 1024;

const anId: Read<string> = (value, path, report) => {
  if (typeof value === 'string' && value.length <= MAX_ID && /^[a-z0-9]+(-[a-z0-9]+)*$/.test(value)) return value;
  return problem(report, path, `use lower-case letters, digits and single hyphens, at most ${MAX_ID}`, value);
};

const aText: Read<string> = (value, path, report) => {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= MAX_TEXT && !/\p{C}/u.test(value))
    return value;
  return problem(report, path, `write 1 to ${MAX_TEXT} printable characters`, value);
};

const aFlag: Read<boolean> = (value, path, report) =>
  typeof value === 'boolean' ? value : problem(report, path, 'write true or false', value);

const aNumber =
  (min: number, max: number): Read<number> =>
  (value, path, report) =>
    typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
      ? value
      : problem(report, path, `write a whole number from ${min} to ${max}`, value);

/** `known` holds words that make sense but that this version cannot serve; they deserve another answer than a typo. */
const oneOf =
  <T extends string>(offered: readonly T[], known: readonly string[] = offered): Read<T> =>
  (value, path, report) => {
    const found = offered.find((one) => one === value);
    if (found !== undefined) return found;
    const why = typeof value === 'string' && known.includes(value) ? 'this version cannot serve it yet; ' : '';
    return problem(report, path, `${why}choose one of ${offered.join(', ')}`, value);
  };

const listOf =
  <T>(read: Read<T>): Read<T[]> =>
  (value, path, report) => {
    if (!Array.isArray(value)) return problem(report, path, 'write a list: [ … ]', value);
    const items = value.map((item: unknown, index) => read(item, `${path}[${index}]`, report));
    return items.every((item) => item !== undefined) ? items : undefined;
  };

/** Each at most once: a repeated word is usually the wrong one of two. */
const setOf =
  <T>(read: Read<T>, keyOf: (item: T) => unknown = (item) => item): Read<T[]> =>
  (value, path, report) => {
    const items = listOf(read)(value, path, report);
    if (items === undefined || new Set(items.map(keyOf)).size === items.length) return items;
    return problem(report, path, 'list each one once', value);
  };

const aLocalizedText: Read<Localized> = (value, path, report) => {
  const texts = objectWith(['en', 'zh'], value, path, report);
  if (!texts) return undefined;
  const [en, zh] = [aText(texts.en, `${path}.en`, report), aText(texts.zh, `${path}.zh`, report)];
  return en !== undefined && zh !== undefined ? { en, zh } : undefined;
};

/** A curve has one size; RSA needs to be told which. */
const aKeyRule: Read<KeyRule> = (value, path, report) => {
  const isRsa = isObject(value) && value.type === 'rsa';
  const rule = objectWith(isRsa ? ['type', 'min_bits', 'max_bits'] : ['type'], value, path, report);
  const type = rule && oneOf(KEY_TYPES)(rule.type, `${path}.type`, report);
  if (!rule || type === undefined) return undefined;
  if (type !== 'rsa') return { type, minBits: CURVE_BITS[type], maxBits: CURVE_BITS[type] };
  const minBits = aNumber(MIN_RSA_BITS, MAX_RSA_BITS)(rule.min_bits, `${path}.min_bits`, report);
  const maxBits = aNumber(minBits ?? MIN_RSA_BITS, MAX_RSA_BITS)(rule.max_bits, `${path}.max_bits`, report);
  return minBits !== undefined && maxBits !== undefined ? { type, minBits, maxBits } : undefined;
};

/** Every field of a product, with its key in the file and perhaps a default. A field without a row does not compile. */
const FIELDS: { readonly [K in keyof Product]: readonly [key: string, read: Read<Product[K]>, fallback?: Product[K]] } =
  {
    id: ['id', anId],
    name: ['name', aLocalizedText],
    kind: ['kind', oneOf(PRODUCT_KINDS)],
    trust: ['trust', oneOf(TRUSTS)],
    form: ['form', oneOf(CERTIFICATE_FORMS), 'single'],
    namesMayChange: ['names_may_change', oneOf(NAME_CHANGES)],
    revokesPreviousOnReissue: ['revokes_previous_on_reissue', aFlag],
    revocationGraceHours: ['revocation_grace_hours', aNumber(0, MAX_GRACE_HOURS), 0],
    revocationMayBePutOff: ['revocation_may_be_put_off', aFlag],
    csr: ['csr', oneOf(CSR_RULES)],
    keySources: ['key_sources', setOf(oneOf(OFFERED_KEY_SOURCES, KEY_SOURCES))],
    keys: ['keys', setOf(aKeyRule, ({ type }) => type)],
    signHashes: ['sign_hashes', setOf(oneOf(OFFERED_SIGN_HASHES, SIGN_HASHES))],
    allowsWildcard: ['allows_wildcard', aFlag],
    dcvMethods: ['dcv_methods', setOf(oneOf(OFFERED_DCV_METHODS, DCV_METHODS))],
    dcvScopes: ['dcv_scopes', setOf(oneOf(DCV_SCOPES))],
    maxValidityDays: ['max_validity_days', aNumber(1, MAX_DAYS)],
    termDays: ['term_days', aNumber(1, MAX_DAYS)],
    reuseDays: ['reuse_days', aNumber(0, MAX_DAYS)],
  };

const aProduct: Read<Product> = (value, path, report) => {
  const keys = Object.values(FIELDS).map(([key]) => key);
  const row = objectWith(keys, value, path, report);
  if (!row) return undefined;
  const fields = Object.entries(FIELDS).map(([field, [key, read, fallback]]) => {
    return [field, read(Object.hasOwn(row, key) ? row[key] : fallback, `${path}.${key}`, report)] as const;
  });
  if (fields.some(([, field]) => field === undefined)) return undefined;
  // FIELDS has a row for every field, so this is a whole product.
  const product = Object.fromEntries(fields) as unknown as Product;
  const conflicts = conflictsOf(product);
  for (const { key, remedy } of conflicts) report(`${path}.${key}`, `${remedy}.`);
  return conflicts.length === 0 ? product : undefined;
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object with no other keys than these. That one is missing is for whoever reads it to tell. */
function objectWith(keys: readonly string[], value: unknown, path: string, report: Report) {
  if (!isObject(value)) return problem(report, path, `write an object with ${keys.join(', ')}`, value);
  for (const key of Object.keys(value).filter((one) => !keys.includes(one))) {
    report(`${path}.${excerpt(key)}`, `there is no such key; remove it, or spell it as one of ${keys.join(', ')}.`);
  }
  return value;
}

/** Never the whole value: it may be large, nested or not meant to be seen. */
function problem(report: Report, path: string, remedy: string, value: unknown): undefined {
  const isPlain = value === null || ['string', 'number', 'boolean'].includes(typeof value);
  const found = isPlain ? excerpt(JSON.stringify(value)) : Array.isArray(value) ? 'a list' : 'an object';
  report(path, value === undefined ? `it is missing; ${remedy}.` : `${remedy} (it is ${found}).`);
}

const excerpt = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}…` : text);
