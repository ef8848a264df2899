// Connections of callers leave descriptors for the rest of the service, whatever the limit.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { descriptorLimit, maxConnectionsOf } from '../../src/wiring/descriptors.ts';

test('connections are bounded by descriptors, with a reserve for the store, DNS and callbacks', () => {
  const { config } = readConfig({});
  const postgres = readConfig({ RESEAL_DATABASE_URL: 'postgres://db/reseal' }).config;
  const reserve = 64 + 128 + 256 + 64;
  assert.equal(maxConnectionsOf(config, 4_096), 4_096 - reserve);
  assert.equal(maxConnectionsOf(postgres, 4_096), 4_096 - reserve - 10);
  assert.equal(maxConnectionsOf(config, 256), 128, 'half of a small limit');
  for (const many of [65_536, Number.POSITIVE_INFINITY]) {
    assert.equal(maxConnectionsOf(config, many), 512 * 16, 'no more than requests need');
  }
});

test('the limit of this process can be read', () => {
  const limit = descriptorLimit();
  assert.ok(limit >= 256, String(limit));
});
