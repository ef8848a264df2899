// Parses the operator's products file from JSON. Strict: a misspelt key would silently sell another product, so unknown
// keys are errors, and only fields with a fallback may be left out. Reports all problems at once, with path and remedy.
import type { Localized } from '../../kernel/locale.ts';
import { PRODUCT_KINDS, TRUSTS } from '../certificate/authority.ts';
import { PRIVATE_NAMES } from '../certificate/names.ts';
import { DCV_METHODS, DCV_SCOPES } from '../certificate/order.ts';
import { KEY_TYPES } from '../certificate/public-key.ts';
import { SIGN_HASHES } from '../certificate/sign-hash.ts';
import { isNeverCalled } from '../egress/address-verdict.ts';
import { type AddressRule, parseAddressRule, ruleText } from '../egress/addresses.ts';
import { conflictsOf, type JsonSchema, RULES_AS_SCHEMA } from './product-rules.ts';
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

/** Returns the products of `{ "products": [ … ] }`, to be added to the built-in ones. Throws a ProductsError. */
export function parseProducts(json: unknown): Product[] {
  const problems: string[] = [];
  const report: Report = (path, problem) => problems.push(`${path}: ${problem}`);
  const file = objectWith(['products', '$schema'], json, 'file', report);
  if (file?.$schema !== undefined && typeof file.$schema !== 'string')
    report('file.$schema', 'write a text, or leave it out.');
  const products = file && listOf(readProduct)(file.products, 'products', report);
  if (file && Array.isArray(file.products)) requireUniqueNames(file.products, report);
  if (products === undefined || problems.length > 0) throw new ProductsError(problems);
  return products;
}

/** Ids and aliases are one set of names: each must stand for one product. */
function requireUniqueNames(rows: readonly unknown[], report: Report): void {
  const taken = new Set<string>(PRODUCTS.flatMap(({ id, aliases }) => [id, ...aliases.map(String)]));
  const take = (name: unknown, path: string) => {
    if (typeof name !== 'string' && typeof name !== 'number') return;
    if (taken.has(String(name))) report(path, `${excerpt(String(name))} is taken already; choose another one.`);
    taken.add(String(name));
  };
  for (const [index, row] of rows.entries()) {
    if (!isObject(row)) continue;
    take(row.id, `products[${index}].id`);
    const aliases: readonly unknown[] = Array.isArray(row.aliases) ? row.aliases : [];
    for (const [place, alias] of [...new Set(aliases)].entries()) take(alias, `products[${index}].aliases[${place}]`);
  }
}

type Report = (path: string, problem: string) => void;
/** Returns undefined after it reported a problem. */
type Read<T> = (value: unknown, path: string, report: Report) => T | undefined;
/** With the JSON Schema of what it reads, so that one table is loader and schema. */
type Reader<T> = Read<T> & { readonly schema: JsonSchema };

const reader = <T>(schema: JsonSchema, read: Read<T>): Reader<T> => Object.assign(read, { schema });

const MAX_ID = 64;
const MAX_TEXT = 200;
const MAX_DAYS = 3650;
const MAX_GRACE_HOURS = 720;
const MIN_RSA_BITS = 1024;
const MAX_ALIAS = 999_999_999;
const MAX_NETWORK = 60;

/** A text that the pattern of its schema matches; characters are counted as JSON Schema does. */
const textLike = (pattern: string, maxLength: number, remedy: string, more: JsonSchema = {}): Reader<string> => {
  const expression = new RegExp(pattern, 'u');
  return reader({ type: 'string', pattern, maxLength, ...more }, (value, path, report) =>
    typeof value === 'string' && [...value].length <= maxLength && expression.test(value)
      ? value
      : reportProblem(report, path, remedy, value),
  );
};

const readId = textLike(
  '^[a-z0-9]+(-[a-z0-9]+)*$',
  MAX_ID,
  `use lower-case letters, digits and single hyphens, at most ${MAX_ID}`,
  { not: { enum: PRODUCTS.flatMap(({ id, aliases }) => [id, ...aliases.map(String)]) } },
);

const readText = textLike('^(?=.*\\S)\\P{C}+$', MAX_TEXT, `write 1 to ${MAX_TEXT} printable characters`);

const readBoolean: Reader<boolean> = reader({ type: 'boolean' }, (value, path, report) =>
  typeof value === 'boolean' ? value : reportProblem(report, path, 'write true or false', value),
);

const integerIn = (minimum: number, maximum: number): Reader<number> =>
  reader({ type: 'integer', minimum, maximum }, (value, path, report) =>
    typeof value === 'number' && Number.isInteger(value) && value >= minimum && value <= maximum
      ? value
      : reportProblem(report, path, `write a whole number from ${minimum} to ${maximum}`, value),
  );

const readAlias = reader(
  { ...integerIn(1, MAX_ALIAS).schema, not: { enum: PRODUCTS.flatMap(({ aliases }) => aliases) } },
  integerIn(1, MAX_ALIAS),
);

/** `known` adds values that are valid but not implemented; they get another message than a typo. */
const oneOf = <T extends string>(offered: readonly T[], known: readonly string[] = offered): Reader<T> =>
  reader({ enum: offered }, (value, path, report) => {
    const found = offered.find((one) => one === value);
    if (found !== undefined) return found;
    const why = typeof value === 'string' && known.includes(value) ? 'this version cannot serve it yet; ' : '';
    return reportProblem(report, path, `${why}choose one of ${offered.join(', ')}`, value);
  });

const listOf = <T>(read: Reader<T>): Reader<T[]> =>
  reader({ type: 'array', items: read.schema }, (value, path, report) => {
    if (!Array.isArray(value)) return reportProblem(report, path, 'write a list: [ … ]', value);
    const items = value.map((item: unknown, index) => read(item, `${path}[${index}]`, report));
    return items.every((item) => item !== undefined) ? items : undefined;
  });

/** A list without duplicates: a repeated value is usually a typo for another. */
const setOf = <T>(read: Reader<T>, keyOf: (item: T) => unknown = (item) => item, more: JsonSchema = {}): Reader<T[]> =>
  reader({ type: 'array', items: read.schema, uniqueItems: true, ...more }, (value, path, report) => {
    const items = listOf(read)(value, path, report);
    if (items === undefined || new Set(items.map(keyOf)).size === items.length) return items;
    return reportProblem(report, path, 'list each one once', value);
  });

const objectSchema = (properties: JsonSchema, required = Object.keys(properties)): JsonSchema => ({
  ...{ type: 'object', properties, required, additionalProperties: false },
});

const readLocalized: Reader<Localized> = reader(
  objectSchema({ en: readText.schema, zh: readText.schema }),
  (value, path, report) => {
    const texts = objectWith(['en', 'zh'], value, path, report);
    if (!texts) return undefined;
    const [en, zh] = [readText(texts.en, `${path}.en`, report), readText(texts.zh, `${path}.zh`, report)];
    return en !== undefined && zh !== undefined ? { en, zh } : undefined;
  },
);

const readRsaBits = integerIn(MIN_RSA_BITS, MAX_RSA_BITS);
const KEY_RULE_SCHEMA: JsonSchema = {
  anyOf: [
    objectSchema({ type: { const: 'rsa' }, min_bits: readRsaBits.schema, max_bits: readRsaBits.schema }),
    objectSchema({ type: { enum: KEY_TYPES.filter((type) => type !== 'rsa') } }),
  ],
};
/** One rule of each type. */
const ONE_OF_EACH_TYPE: JsonSchema = {
  allOf: KEY_TYPES.map((type) => ({
    contains: { properties: { type: { const: type } }, required: ['type'] },
    ...{ minContains: 0, maxContains: 1 },
  })),
};

/** Only RSA has sizes to choose. */
const readKeyRule: Reader<KeyRule> = reader(KEY_RULE_SCHEMA, (value, path, report) => {
  const isRsa = isObject(value) && value.type === 'rsa';
  const rule = objectWith(isRsa ? ['type', 'min_bits', 'max_bits'] : ['type'], value, path, report);
  const type = rule && oneOf(KEY_TYPES)(rule.type, `${path}.type`, report);
  if (!rule || type === undefined) return undefined;
  if (type !== 'rsa') return { type, minBits: CURVE_BITS[type], maxBits: CURVE_BITS[type] };
  const minBits = readRsaBits(rule.min_bits, `${path}.min_bits`, report);
  const maxBits = integerIn(minBits ?? MIN_RSA_BITS, MAX_RSA_BITS)(rule.max_bits, `${path}.max_bits`, report);
  return minBits !== undefined && maxBits !== undefined ? { type, minBits, maxBits } : undefined;
});

/** The schema cannot say more than which characters a network is written with. */
const readNetwork: Reader<AddressRule> = reader(
  { type: 'string', pattern: '^[0-9A-Fa-f.:/[\\]]+$', maxLength: MAX_NETWORK },
  (value, path, report) => {
    const rule = typeof value === 'string' && value.length <= MAX_NETWORK ? parseAddressRule(value) : undefined;
    if (!rule) return reportProblem(report, path, 'write a network such as 10.0.0.0/8 or fd12:3456::/32', value);
    if (!isNeverCalled(rule)) return rule;
    const never = 'link-local, multicast and cloud metadata addresses are never asked; remove it';
    return reportProblem(report, path, never, value);
  },
);

/** Every field of a product: its key in the file, its reader and an optional fallback. No row, no compilation. */
const FIELDS: {
  readonly [K in keyof Product]: readonly [key: string, read: Reader<Product[K]>, fallback?: Product[K]];
} = {
  id: ['id', readId],
  aliases: ['aliases', setOf(readAlias), []],
  name: ['name', readLocalized],
  kind: ['kind', oneOf(PRODUCT_KINDS)],
  trust: ['trust', oneOf(TRUSTS)],
  form: ['form', oneOf(CERTIFICATE_FORMS), 'single'],
  namesMayChange: ['names_may_change', oneOf(NAME_CHANGES)],
  revokesPreviousOnReissue: ['revokes_previous_on_reissue', readBoolean],
  revocationGraceHours: ['revocation_grace_hours', integerIn(0, MAX_GRACE_HOURS), 0],
  revocationMayBePutOff: ['revocation_may_be_put_off', readBoolean],
  csr: ['csr', oneOf(CSR_RULES)],
  keySources: ['key_sources', setOf(oneOf(OFFERED_KEY_SOURCES, KEY_SOURCES))],
  keys: ['keys', setOf(readKeyRule, ({ type }) => type, ONE_OF_EACH_TYPE)],
  signHashes: ['sign_hashes', setOf(oneOf(OFFERED_SIGN_HASHES, SIGN_HASHES))],
  allowsWildcard: ['allows_wildcard', readBoolean],
  privateNames: ['private_names', setOf(oneOf(PRIVATE_NAMES)), []],
  dcvMethods: ['dcv_methods', setOf(oneOf(OFFERED_DCV_METHODS, DCV_METHODS))],
  dcvScopes: ['dcv_scopes', setOf(oneOf(DCV_SCOPES))],
  validationNetworks: ['validation_networks', setOf(readNetwork, ruleText), []],
  maxValidityDays: ['max_validity_days', integerIn(1, MAX_DAYS)],
  shortLived: ['short_lived', readBoolean, false],
  requiresLint: ['requires_lint', readBoolean, false],
  termDays: ['term_days', integerIn(1, MAX_DAYS)],
  reuseDays: ['reuse_days', integerIn(0, MAX_DAYS)],
};

const PRODUCT_SCHEMA: JsonSchema = {
  ...objectSchema(
    Object.fromEntries(
      Object.values(FIELDS).map(([key, { schema }, fallback]) => [
        key,
        fallback === undefined ? schema : { ...schema, default: fallback },
      ]),
    ),
    Object.values(FIELDS).flatMap(([key, , fallback]) => (fallback === undefined ? [key] : [])),
  ),
  allOf: RULES_AS_SCHEMA,
};

const readProduct: Reader<Product> = reader(PRODUCT_SCHEMA, (value, path, report) => {
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
});

/**
 * The JSON Schema of a products file, for editors. It refuses what the loader refuses, except what JSON Schema cannot say:
 * ids and aliases that the file has twice, a max_bits below min_bits, and what is written like a network but is none that
 * may be asked.
 */
export const PRODUCTS_SCHEMA: JsonSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Products of Reseal',
  ...objectSchema({ $schema: { type: 'string' }, products: { type: 'array', items: PRODUCT_SCHEMA } }, ['products']),
};

/** A product as a products file has it. */
export const asInFile = (product: Product): Readonly<Record<string, unknown>> => {
  const keys = product.keys.map(({ type, minBits, maxBits }) =>
    type === 'rsa' ? { type, min_bits: minBits, max_bits: maxBits } : { type },
  );
  const values: Record<string, unknown> = {
    ...product,
    keys,
    validationNetworks: product.validationNetworks.map(ruleText),
  };
  return Object.fromEntries(Object.entries(FIELDS).map(([field, [key]]) => [key, values[field]]));
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reports unknown keys. Missing keys are reported by their readers. */
function objectWith(keys: readonly string[], value: unknown, path: string, report: Report) {
  if (!isObject(value)) return reportProblem(report, path, `write an object with ${keys.join(', ')}`, value);
  for (const key of Object.keys(value).filter((one) => !keys.includes(one))) {
    report(`${path}.${excerpt(key)}`, `there is no such key; remove it, or spell it as one of ${keys.join(', ')}.`);
  }
  return value;
}

/** Shows at most an excerpt of the value: it may be large, nested or secret. */
function reportProblem(report: Report, path: string, remedy: string, value: unknown): undefined {
  const isPlain = value === null || ['string', 'number', 'boolean'].includes(typeof value);
  const found = isPlain ? excerpt(JSON.stringify(value)) : Array.isArray(value) ? 'a list' : 'an object';
  report(path, value === undefined ? `it is missing; ${remedy}.` : `${remedy} (it is ${found}).`);
}

const excerpt = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}…` : text);
