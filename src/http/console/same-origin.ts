// Requests to /console/api come from pages of this service, and from no other site (CSRF). Beside the cookie's SameSite, the
// browser's own words are asked for: Sec-Fetch-Site, and Origin. Unsafe methods must carry JSON as well, which no form sends.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import { TransportRefusal } from '../front/reply.ts';

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
export const isUnsafe = ({ method }: Pick<FastifyRequest, 'method'>): boolean => !SAFE.has(method);

export function requireSameOrigin(app: FastifyInstance, publicUrl: () => string): void {
  app.addHook('onRequest', async (request) => {
    const { 'sec-fetch-site': site, origin, host, 'content-type': type = '' } = request.headers;
    if (site !== undefined && site !== 'same-origin' && (isUnsafe(request) || site !== 'none')) throw crossSite();
    if (origin !== undefined && !originsOf(publicUrl(), host).includes(origin)) throw crossSite();
    if (!isUnsafe(request)) return;
    // A browser sends one of the two with every unsafe request.
    if (site === undefined && origin === undefined) throw crossSite();
    if (!/^application\/json\s*(;|$)/i.test(type)) throw notJson();
  });
}

/** Behind a proxy that ends TLS, and without a public URL, the scheme is not known. */
function originsOf(publicUrl: string, host: string | undefined): string[] {
  return [new URL(publicUrl).origin, `http://${host}`, `https://${host}`];
}

const crossSite = (): Refusal =>
  new Refusal('permission_denied', {
    reason: {
      en: 'The request does not come from a page of this service. Open the console at its public address; behind a proxy, set RESEAL_PUBLIC_URL to it.',
      zh: '请求并非来自本服务的页面。请通过公开地址打开控制台；如位于代理之后，请将 RESEAL_PUBLIC_URL 设为该地址。',
    },
  });

const notJson = (): Refusal =>
  new TransportRefusal(415, 'invalid_parameters', {
    en: 'Requests that change something must be sent with Content-Type: application/json.',
    zh: '变更请求必须使用 Content-Type: application/json。',
  });
