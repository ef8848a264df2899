// Checks the products file. Also returns the longest validity of any product, for the check of the issuers.
import { PRODUCTS, type Product } from '../../domain/catalog/products.ts';
import { type Diagnostic, Problem } from '../../kernel/problem.ts';
import { readProductsFile } from '../catalog/products-file.ts';

interface ProductsChecked {
  readonly diagnostic: Diagnostic;
  readonly longestDays: number;
}

export function checkProducts(file: string | undefined): ProductsChecked {
  const check = 'products';
  try {
    const own = readProductsFile(file);
    const text = `${PRODUCTS.length} built in, ${own.length} of your own`;
    return { diagnostic: { check, state: 'ok', text }, longestDays: longestOf([...PRODUCTS, ...own]) };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { message: text, remedy } = error;
    return { diagnostic: { check, state: 'problem', text, remedy }, longestDays: longestOf(PRODUCTS) };
  }
}

const longestOf = (products: readonly Product[]): number =>
  Math.max(...products.map(({ maxValidityDays }) => maxValidityDays));
