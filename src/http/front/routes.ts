// Paths that do not exist, and paths that do but not with this method. Decided before the body is read, and inside
// /openapi/v3 after authentication: a stranger learns nothing about what there is.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import { TransportRefusal } from './reply.ts';

interface Route {
  readonly segments: readonly string[];
  readonly methods: Set<string>;
}
export type Routes = ReadonlyMap<string, Route>;

/** Must be called before the first route. */
export function rememberRoutes(app: FastifyInstance): Routes {
  const routes = new Map<string, Route>();
  app.addHook('onRoute', ({ url, method }) => {
    const segments = segmentsOf(url);
    const known = routes.get(segments.join('/')) ?? { segments, methods: new Set() };
    for (const one of [method].flat()) known.methods.add(one);
    routes.set(segments.join('/'), known);
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
    throw new TransportRefusal(405, 'method_not_allowed', undefined, { allow: allowed.join(', ') });
  });
}

function methodsOf(url: string, routes: Routes): string[] {
  // Segment by segment, so that an encoded slash stays part of its segment.
  const path = segmentsOf(url.split(/[?#]/, 1)[0] ?? '').map(decodeURIComponent);
  const fits = ({ segments }: Route) =>
    segments.length === path.length &&
    segments.every((segment, index) => (segment.startsWith(':') ? path[index] !== '' : segment === path[index]));
  return [...routes.values()].filter(fits).flatMap(({ methods }) => [...methods]);
}

/** Without the slash at the beginning, and without one at the end. */
const segmentsOf = (path: string): string[] =>
  path
    .replace(/(?<=.)\/$/, '')
    .slice(1)
    .split('/');
