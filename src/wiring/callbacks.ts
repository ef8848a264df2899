// Wires callbacks: the outbound function with the operator's allow and deny rules, and the use cases over it.

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { callOut } from '../adapters/egress/call-out.ts';
import { KeptConnections } from '../adapters/egress/kept-connections.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import type { AddressRule } from '../domain/egress/addresses.ts';
import type { OutboundPolicy } from '../domain/egress/outbound.ts';
import type { AccountId } from '../domain/ids.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { type ConfigureCallback, configureCallback } from '../usecases/callbacks/configure-callback.ts';
import { type SendTestCallback, sendTestCallback } from '../usecases/callbacks/send-test-callback.ts';
import type { App } from './app.ts';
import { type DeliveryServices, openDeliveries } from './deliveries.ts';

export interface CallbackServices extends DeliveryServices {
  readonly sendTestCallback: SendTestCallback;
  readonly callbacks: ConfigureCallback;
}

/** The sandbox's additions to the operator's configuration. */
export interface CallbackNetwork {
  readonly allow: readonly AddressRule[];
  /** PEM. */
  readonly roots: readonly string[];
  readonly dnsServers: readonly string[];
}

const TEST_MS = 10_000;
/** In milliseconds. Idle: servers commonly wait 5 s or longer before they close a connection themselves. */
const KEEP = { idleMs: 4_000, ageMs: 60_000, exchanges: 1_000 } as const;
const USER_AGENT = 'Reseal-Callback/1';

export function openCallbacks(
  app: App,
  { callbacks: config, dnsServers }: Config,
  now: Clock,
  outside: CallbackNetwork = { allow: [], roots: [], dnsServers },
): CallbackServices {
  const policyFor = (accountId: AccountId): OutboundPolicy => ({
    allow: [
      ...config.allow.filter((one) => one.accountId === null || one.accountId === accountId).map(({ rule }) => rule),
      ...outside.allow,
    ],
    deny: config.deny,
    totalMs: TEST_MS,
  });
  const { store, newId } = app;
  const kept = new KeptConnections({ ...KEEP, perAccount: config.perAccount, total: config.atOnce });
  const tools = {
    store,
    now,
    newId,
    randomBytes,
    callOut: callOut({
      dnsServers: outside.dnsServers,
      extraRoots: [...readRoots(config.rootsFile), ...outside.roots],
      userAgent: USER_AGENT,
      kept,
    }),
    kept,
    policyFor,
    overlapMs: config.rotationMs,
    testRate: config.testRate,
    acquireSlot: app.peers.acquireTestSlot,
  };
  return {
    sendTestCallback: sendTestCallback(tools),
    callbacks: configureCallback(tools),
    ...openDeliveries(app, config, tools),
  };
}

function readRoots(file: string | undefined): string[] {
  if (file === undefined) return [];
  try {
    const blocks = readFileSync(file, 'utf8').match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
    if (blocks.length === 0) throw new Error('it has no certificate in PEM');
    // Parsed here, because Node silently ignores a root that it cannot parse.
    return blocks.map((block) => new X509Certificate(block).toString());
  } catch (error) {
    throw new Problem(
      EXIT.configuration,
      `RESEAL_CALLBACK_ROOTS_FILE ${file} cannot be used: ${(error as Error).message}`,
      'Write the roots into it as PEM, one after another.',
      { cause: error },
    );
  }
}
