// 404 and 405. Both are decided before the body is read and, in /openapi/v3, after authentication, so that an
// unauthenticated caller cannot probe for routes.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import { TransportRefusal } from './reply.ts';

interface Route {
  readonly segments: readonly string[];
  readonly methods: Set<string>;
}
export type Routes = ReadonlyMap<string, Route>;

/** Call before registering any route. */
export function collectRoutes(app: FastifyInstance): Routes {
  const routes = new Map<string, Route>();
  app.addHook('onRoute', ({ url, method }) => {
    // The root is a page for people; to programs there is no such path, with any method.
    if (url === '/') return;
    const segments = segmentsOf(url);
    const known = routes.get(segments.join('/')) ?? { segments, methods: new Set() };
    for (const one of [method].flat()) known.methods.add(one);
    routes.set(segments.join('/'), known);
  });
  return routes;
}

export function refuseUnknownRoutes(app: FastifyInstance, routes: Routes): void {
  // The hook below answers first. The handler only makes this instance own the unknown paths under its prefix.
  app.setNotFoundHandler(async () => {
    throw new Refusal('route_not_found');
  });
  app.addHook('onRequest', (request, _reply, done) => {
    if (!request.is404 || request.server !== app) return done();
    const allowed = methodsOf(request.url, routes);
    if (allowed.length === 0) return done(new Refusal('route_not_found'));
    done(new TransportRefusal(405, 'method_not_allowed', undefined, { allow: allowed.join(', ') }));
  });
}

function methodsOf(url: string, routes: Routes): string[] {
  // Decode per segment: an encoded slash stays inside its segment.
  const path = segmentsOf(url.split(/[?#]/, 1)[0] ?? '').map(decodeURIComponent);
  const matches = ({ segments }: Route) =>
    segments.length === path.length &&
    segments.every((segment, index) => (segment.startsWith(':') ? path[index] !== '' : segment === path[index]));
  return [...routes.values()].filter(matches).flatMap(({ methods }) => [...methods]);
}

/** Ignores a leading and a trailing slash. */
const segmentsOf = (path: string): string[] =>
  path
    .replace(/(?<=.)\/$/, '')
    .slice(1)
    .split('/');
