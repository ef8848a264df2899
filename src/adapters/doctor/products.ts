// Can the products file be used, and how long does the longest certificate of any product live?
import { PRODUCTS, type Product } from '../../domain/catalog/products.ts';
import { type Finding, Problem } from '../../kernel/problem.ts';
import { ownProducts } from '../catalog/products-file.ts';

export interface ProductsChecked {
  readonly finding: Finding;
  readonly longestDays: number;
}

export function checkProducts(file: string | undefined): ProductsChecked {
  const check = 'products';
  try {
    const own = ownProducts(file);
    const text = `${PRODUCTS.length} built in, ${own.length} of your own`;
    return { finding: { check, state: 'ok', text }, longestDays: longestOf([...PRODUCTS, ...own]) };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { message: text, remedy } = error;
    return { finding: { check, state: 'problem', text, remedy }, longestDays: longestOf(PRODUCTS) };
  }
}

const longestOf = (products: readonly Product[]): number =>
  Math.max(...products.map(({ maxValidityDays }) => maxValidityDays));
