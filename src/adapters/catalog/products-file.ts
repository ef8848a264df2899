// Reads the operator's products file; domain/catalog/products-file.ts validates its content.
import { readFileSync } from 'node:fs';
import { type Catalog, PRODUCTS, type Product } from '../../domain/catalog/products.ts';
import { ProductsError, parseProducts } from '../../domain/catalog/products-file.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';

/** Throws a Problem that lists every fault of the file. Returns no products if `file` is undefined. */
export function readProductsFile(file: string | undefined): Product[] {
  if (file === undefined) return [];
  try {
    return parseProducts(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const why = error instanceof ProductsError ? `\n  ${error.problems.join('\n  ')}` : ` ${(error as Error).message}`;
    throw new Problem(EXIT.configuration, `RESEAL_PRODUCTS_FILE ${file} cannot be used:${why}`, 'Correct the file.', {
      cause: error,
    });
  }
}

/** The built-in products, and those of the file. */
export const readCatalog = (file: string | undefined): Catalog =>
  new Map([...PRODUCTS, ...readProductsFile(file)].map((product) => [product.id, product]));
