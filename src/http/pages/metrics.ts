// /metrics for Prometheus. Metrics are for the operator: without a bearer token they are served to loopback only.
import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import { isForwarded, isWithin, LOOPBACK } from '../front/remote-network.ts';

export function metricsEndpoint(app: FastifyInstance, metrics: { text(): Promise<string> }, token?: string): void {
  app.get('/metrics', { schema: { hide: true } }, async (request, reply) => {
    if (
      token === undefined
        ? isForwarded(request) || !isWithin(LOOPBACK, request.ip)
        : !isBearer(request.headers.authorization, token)
    ) {
      throw new Refusal('permission_denied', {
        reason: {
          en: 'Metrics are shown to this machine only, unless RESEAL_METRICS_TOKEN is set and sent as a bearer token.',
          zh: '指标默认仅限本机访问；设置 RESEAL_METRICS_TOKEN 后，请以 Bearer 令牌发送。',
        },
      });
    }
    return reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.text());
  });
}

function isBearer(header: string | undefined, token: string): boolean {
  const expected = Buffer.from(`Bearer ${token}`);
  const given = Buffer.from(header ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}
