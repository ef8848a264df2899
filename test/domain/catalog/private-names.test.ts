// Settings of a product for names inside a network: what the products file may say, and what it never may.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRODUCTS } from '../../../src/domain/catalog/products.ts';
import { asInFile, ProductsError, parseProducts } from '../../../src/domain/catalog/products-file.ts';

const PRIVATE = PRODUCTS.find(({ id }) => id === 'tls-private')!;
const ROW = { ...asInFile(PRIVATE), id: 'inside', aliases: [] };
const PUBLIC = {
  ...{ trust: 'public', csr: 'required', max_validity_days: 90, reuse_days: 90, private_names: [] },
  keys: [{ type: 'p256' }],
};
const SIGNING = {
  ...{ kind: 'code_signing', names_may_change: 'none', allows_wildcard: false, dcv_methods: [], dcv_scopes: [] },
};
const read = (change: object) => parseProducts({ products: [{ ...ROW, ...change }] })[0];

test('private names and networks are refused where they cannot be, each with the remedy', () => {
  const table: readonly (readonly [change: object, problem: RegExp])[] = [
    [{ private_names: ['host'] }, /\.private_names\[0\]: choose one of internal, ip/],
    [{ ...PUBLIC, private_names: ['ip'] }, /\.private_names: .* never certified under public rules/],
    [{ ...PUBLIC, private_names: ['internal'] }, /\.private_names: .* never certified under public rules/],
    [{ ...SIGNING, private_names: ['internal'] }, /\.private_names: only ssl certifies names/],
    [{ validation_networks: ['10.0.0.1/8'] }, /\.validation_networks\[0\]: write a network such as/],
    [{ validation_networks: ['corp'] }, /\.validation_networks\[0\]: write a network such as/],
    [{ validation_networks: ['169.254.169.254'] }, /\.validation_networks\[0\]: .* never asked/],
    [{ validation_networks: ['fd00:ec2::254'] }, /\.validation_networks\[0\]: .* never asked/],
    [{ validation_networks: ['::1', '0::1'] }, /\.validation_networks: list each one once/],
    [{ dcv_methods: ['dns'], validation_networks: ['10.0.0.0/8'] }, /\.validation_networks: they are for files/],
    [{ ...PUBLIC, validation_networks: ['10.0.0.0/8'] }, /\.validation_networks: .* only public addresses are asked/],
  ];
  for (const [change, expected] of table) {
    assert.throws(
      () => read(change),
      (error) => error instanceof ProductsError && error.problems.length === 1 && expected.test(error.message),
      JSON.stringify(change),
    );
  }
  assert.doesNotThrow(() => read(PUBLIC));
});

test('networks are read with a port, and written as they are read', () => {
  const networks = ['10.0.0.0/8:80', 'fd00:0:0:0:0:0:0:0/8'];
  const product = read({ validation_networks: networks });
  assert.deepEqual(product && asInFile(product).validation_networks, networks);
  const { private_names: _, validation_networks: __, ...before } = ROW as Record<string, unknown>;
  const [closed] = parseProducts({ products: [before] });
  assert.deepEqual([closed?.privateNames, closed?.validationNetworks], [[], []], 'left out, nothing is opened');
});
