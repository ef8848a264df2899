// The products file of an operator, read. What it may say is the domain's business.
import { readFileSync } from 'node:fs';
import type { Product } from '../../domain/catalog/products.ts';
import { ProductsError, parseProducts } from '../../domain/catalog/products-file.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';

export function ownProducts(file: string | undefined): Product[] {
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
