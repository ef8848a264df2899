// reseal product list | show | schema
import { findProduct, type Product } from '../domain/catalog/products.ts';
import { asInFile, PRODUCTS_SCHEMA } from '../domain/catalog/products-file.ts';
import { maxValidityDays } from '../domain/catalog/public-rules.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Command } from './command.ts';
import { table } from './values.ts';

const keysOf = ({ keys }: Product): string =>
  keys.map(({ type, minBits, maxBits }) => (type === 'rsa' ? `rsa ${minBits}-${maxBits}` : type)).join(', ');

/** `public` is easily taken for a promise. */
const TRUST_NOTE =
  'TRUST is the rules a product is held to. Certificates below a root that this service made are trusted only where you have\ndistributed it, whatever the product; see reseal ca list, and ca import for an issuer of your own.';

export const productList: Command = {
  store: 'none',
  about: 'list the products, built in and of your own',
  examples: ['product list'],
  positionals: [],
  options: {},
  async run(_, { products, now }) {
    const all = [...products().values()];
    const days = (one: Product) => String(maxValidityDays(one, now()));
    const rows = all.map((one) => [one.id, one.kind, one.trust, days(one), keysOf(one), one.name.en]);
    return {
      json: { products: all.map(asInFile) },
      text: `${table(['ID', 'KIND', 'TRUST', 'MAX DAYS', 'KEYS', 'NAME'], rows)}\n${TRUST_NOTE}`,
    };
  },
};

export const productShow: Command = {
  store: 'none',
  about: 'show a product as a products file has it, to be copied and changed',
  examples: ['product show ssl-dv'],
  positionals: ['PRODUCT'],
  options: {},
  async run({ positionals: [id = ''] }, { products }) {
    const product = findProduct(products(), id);
    if (!product) {
      const known = [...products().keys()].join(', ');
      throw new Problem(EXIT.refused, `there is no product ${id}`, `Name one of: ${known}.`);
    }
    return { json: { product: asInFile(product) }, text: JSON.stringify(asInFile(product), null, 2) };
  },
};

export const productSchema: Command = {
  store: 'none',
  about: 'print the JSON Schema of a products file, for editors',
  examples: ['product schema > products.schema.json'],
  positionals: [],
  options: {},
  async run() {
    return { json: PRODUCTS_SCHEMA, text: JSON.stringify(PRODUCTS_SCHEMA, null, 2) };
  },
};
