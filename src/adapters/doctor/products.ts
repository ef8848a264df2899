// Checks the products file. Also returns the longest validity of any product, for the check of the issuers.
import { PRODUCTS, type Product } from '../../domain/catalog/products.ts';
import { type Diagnostic, Problem } from '../../kernel/problem.ts';
import { readProductsFile } from '../catalog/products-file.ts';

interface ProductsChecked {
  readonly diagnostic: Diagnostic;
  /** Those that are offered; without one's own if their file cannot be read. */
  readonly products: readonly Product[];
  readonly longestDays: number;
}

export function checkProducts(file: string | undefined): ProductsChecked {
  const check = 'products';
  try {
    const own = readProductsFile(file);
    const text = `${PRODUCTS.length} built in, ${own.length} of your own`;
    const products = [...PRODUCTS, ...own];
    return { diagnostic: { check, state: 'ok', text }, products, longestDays: longestOf(products) };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { message: text, remedy } = error;
    const diagnostic: Diagnostic = { check, state: 'problem', text, remedy };
    return { diagnostic, products: PRODUCTS, longestDays: longestOf(PRODUCTS) };
  }
}

const longestOf = (products: readonly Product[]): number =>
  Math.max(...products.map(({ maxValidityDays }) => maxValidityDays));
