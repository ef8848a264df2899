// The limits of the whole service are never exceeded by the shares of its processes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readConfig } from '../../src/config/config.ts';
import { shareOf, workersOf } from '../../src/wiring/shares.ts';

const connectionsOf = ({ database }: ReturnType<typeof shareOf>): number =>
  database.kind === 'postgresql' ? database.maxConnections : 0;

test('every process has a share, and together they have no more than what is configured', () => {
  const [workers, connections, requests] = [
    fc.nat(64),
    fc.integer({ min: 1, max: 500 }),
    fc.integer({ min: 1, max: 600 }),
  ];
  fc.assert(
    fc.property(workers, connections, requests, (asked, most, places) => {
      const { config } = readConfig({
        ...{ RESEAL_WORKERS: String(asked), RESEAL_MAX_REQUESTS: String(places) },
        ...{ RESEAL_DATABASE_URL: 'postgres://db/reseal', RESEAL_DATABASE_CONNECTIONS: String(most) },
      });
      const count = workersOf(config);
      assert.ok(count <= asked);
      if (count === 0) return;
      const http = shareOf({ ...config, workers: count }, 'http');
      const background = shareOf({ ...config, workers: count }, 'background');
      assert.ok(http.maxRequests >= 1 && connectionsOf(http) >= 1 && connectionsOf(background) >= 1);
      assert.ok(count * http.maxRequests <= places);
      assert.ok(count * connectionsOf(http) + connectionsOf(background) <= most);
    }),
  );
});
