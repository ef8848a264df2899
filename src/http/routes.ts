// Paths that do not exist, and paths that do but not with this method. Decided before the body is read, and inside
// /openapi/v3 after authentication: a stranger learns nothing about what there is.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../domain/errors.ts';
import { TransportRefusal } from './reply.ts';

interface Route {
  readonly pattern: RegExp;
  readonly methods: Set<string>;
}
export type Routes = ReadonlyMap<string, Route>;

/** Must be called before the first route. */
export function rememberRoutes(app: FastifyInstance): Routes {
  const routes = new Map<string, Route>();
  app.addHook('onRoute', ({ url, method }) => {
    const path = url.replace(/(?<=.)\/$/, '');
    const known = routes.get(path) ?? { pattern: patternOf(path), methods: new Set() };
    for (const one of [method].flat()) known.methods.add(one);
    routes.set(path, known);
  });
  return routes;
}

export function refuseUnknownRoutes(app: FastifyInstance, routes: Routes): void {
  // The hook below answers first; this only makes the instance own the unknown paths below its prefix.
  app.setNotFoundHandler(async () => {
    throw new Refusal('route_not_found');
  });
  app.addHook('onRequest', async (request) => {
    if (!request.is404 || request.server !== app) return;
    const allowed = methodsOf(request.url, routes);
    if (allowed.length === 0) throw new Refusal('route_not_found');
    throw new TransportRefusal(405, undefined, { allow: allowed.join(', ') });
  });
}

function methodsOf(url: string, routes: Routes): string[] {
  const path = decodeURIComponent(url.split('?', 1)[0] ?? '').replace(/(?<=.)\/$/, '');
  return [...routes.values()].filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => [...methods]);
}

/** /orders/:id/reissue as an expression; paths of ours have no other special characters. */
const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replace(/:[a-z_]+/g, '[^/]+').replaceAll('.', '\\.')}$`);
