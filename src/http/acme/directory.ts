// The directories, one for each product and one for all with the products as profiles, and new nonces.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ACME_PATHS, isOrderedByAcme } from '../../domain/acme/directory.ts';
import { AcmeProblem } from '../../domain/acme/problem.ts';
import type { Product } from '../../domain/catalog/products.ts';
import { inLocale } from '../../kernel/locale.ts';
import { localeOf } from '../front/failures.ts';
import type { AcmeDoor } from './door.ts';

export interface DirectoryServices {
  readonly offered: () => readonly Product[];
  /** Issuer domain names, for CAA records. */
  readonly caaIdentities: readonly string[];
  readonly termsUrl: string | undefined;
}

const HIDDEN = { schema: { hide: true } } as const;

export function directoryResources({ scope, url }: AcmeDoor, services: DirectoryServices): void {
  const { offered, caaIdentities, termsUrl } = services;
  const ordered = (): readonly Product[] => offered().filter(isOrderedByAcme);

  const directory = (newOrder: string, profiles?: Readonly<Record<string, string>>) => ({
    newNonce: url(ACME_PATHS.newNonce),
    newAccount: url(ACME_PATHS.newAccount),
    newOrder: url(newOrder),
    revokeCert: url(ACME_PATHS.revokeCert),
    keyChange: url(ACME_PATHS.keyChange),
    renewalInfo: url(ACME_PATHS.renewalInfo),
    meta: {
      ...(termsUrl !== undefined && { termsOfService: termsUrl }),
      caaIdentities,
      externalAccountRequired: true,
      ...(profiles && { profiles }),
    },
  });

  scope.get('/directory', HIDDEN, async (request) => {
    const names = ordered().map(({ id, name }) => [id, inLocale(name, localeOf(request))] as const);
    return directory(ACME_PATHS.newOrder, Object.fromEntries(names));
  });

  scope.get('/:product/directory', HIDDEN, async (request: FastifyRequest<{ Params: { product: string } }>) => {
    const { product } = request.params;
    if (!ordered().some(({ id }) => id === product)) throw noDirectory(ordered());
    return directory(`${ACME_PATHS.newOrder}/${product}`);
  });

  newNonces(scope);
}

/** The hook of all answers adds the nonce. */
function newNonces(scope: FastifyInstance): void {
  scope.head('/new-nonce', HIDDEN, async (_request, reply) => reply.code(200).send());
  scope.get('/new-nonce', { ...HIDDEN, exposeHeadRoute: false }, async (_request, reply) => reply.code(204).send());
}

const noDirectory = (products: readonly Product[]): AcmeProblem => {
  const ids = products.map(({ id }) => id);
  return new AcmeProblem('notFound', {
    en: `There is no such directory. Products that ACME can order: ${ids.join(', ')}.`,
    zh: `没有此目录。可通过 ACME 订购的产品：${ids.join('、')}。`,
  });
};
