// Runs a campaign: a long fault-injection or fuzzing experiment on the real service, started manually or at night. Not part
// of `npm test`, though tests may run a small version of one.
import { acmeClients } from './acme-clients.ts';
import { acmeKill } from './acme-kill.ts';
import { backup } from './backup.ts';
import { backupPostgres } from './backup-postgres.ts';
import { callbackKill } from './callback-kill.ts';
import type { Campaign, Print } from './campaign.ts';
import { clocks } from './clocks.ts';
import { consoleOrders } from './console-orders.ts';
import { cscPyhanko } from './csc-pyhanko.ts';
import { csrFuzz } from './csr-fuzz.ts';
import { custody } from './custody.ts';
import { judgeDocument } from './document.ts';
import { fsync } from './fsync.ts';
import { hsm } from './hsm.ts';
import { inventory } from './inventory.ts';
import { javaClient } from './java-client.ts';
import { kill } from './kill.ts';
import { lintGateCampaign } from './lint-gate.ts';
import { linters } from './linters.ts';
import { neighbours } from './neighbours.ts';
import { ocspFuzz } from './ocsp-fuzz.ts';
import { packageInstall } from './package.ts';
import { placingKill } from './placing-kill.ts';
import { reissueKill } from './reissue-kill.ts';
import { resolvers } from './resolvers.ts';
import { rotationKill } from './rotation-kill.ts';
import { runtimes } from './runtimes.ts';
import { sandboxKill } from './sandbox-kill.ts';
import { sealKill } from './seal-kill.ts';
import { rollingRestart, shutdown } from './shutdown.ts';
import { soundKeys } from './sound-keys.ts';
import { storeCopy } from './store-copy.ts';
import { storeFaults } from './store-faults.ts';
import { strangers } from './strangers.ts';

const CAMPAIGNS: Readonly<Record<string, Campaign>> = {
  kill,
  fsync,
  'csr-fuzz': csrFuzz,
  'reissue-kill': reissueKill,
  'rotation-kill': rotationKill,
  'placing-kill': placingKill,
  'acme-kill': acmeKill,
  'callback-kill': callbackKill,
  'ocsp-fuzz': ocspFuzz,
  'lint-gate': lintGateCampaign,
  custody,
  hsm,
  neighbours,
  backup,
  'backup-postgres': backupPostgres,
  'seal-kill': sealKill,
  shutdown,
  'rolling-restart': rollingRestart,
  'store-copy': storeCopy,
  package: packageInstall,
  clocks,
  strangers,
  runtimes,
  'sandbox-kill': sandboxKill,
  'store-faults': storeFaults,
  'csc-pyhanko': cscPyhanko,
  document: judgeDocument,
  'java-client': javaClient,
  inventory,
  'console-orders': consoleOrders,
  linters,
  'sound-keys': soundKeys,
  resolvers,
  'acme-clients': acmeClients,
};

const EXIT = { ok: 0, broken: 1, usage: 2 } as const;
const MAX_N = 1_000_000;

const print: Print = (line) => process.stdout.write(`${line}\n`);
const complain: Print = (line) => process.stderr.write(`${line}\n`);

process.exitCode = await main(process.argv.slice(2));

async function main([name, size, ...more]: readonly string[]): Promise<number> {
  if (name === undefined) {
    print(usage());
    return EXIT.ok;
  }
  const campaign = Object.hasOwn(CAMPAIGNS, name) ? CAMPAIGNS[name] : undefined;
  if (!campaign) {
    complain(`There is no campaign "${name}".\n${usage()}`);
    return EXIT.usage;
  }
  const n = size === undefined ? campaign.defaultN : Number(size);
  if (!Number.isInteger(n) || n < 1 || n > MAX_N || more.length > 0) {
    complain(`After the name comes one whole number, 1 to ${MAX_N}.\n${usage()}`);
    return EXIT.usage;
  }
  return await judge(name, campaign, n);
}

/** A campaign that could not run proved nothing, and counts as a failure. */
async function judge(name: string, campaign: Campaign, n: number): Promise<number> {
  const started = performance.now();
  const broken = await campaign
    .run(n, print)
    .catch((error: unknown) => [`it could not run: ${error instanceof Error ? error.stack : error}`]);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  for (const violation of broken) complain(`BROKEN: ${violation}`);
  print(`${name} ${n}: ${broken.length === 0 ? 'no violation was seen' : 'FAILED'} (${seconds} s)`);
  return broken.length === 0 ? EXIT.ok : EXIT.broken;
}

function usage(): string {
  const width = Math.max(...Object.keys(CAMPAIGNS).map((name) => name.length));
  const lines = Object.entries(CAMPAIGNS).map(
    ([name, { about, defaultN }]) => `  ${name.padEnd(width)}  ${about} (N = ${defaultN})`,
  );
  return `npm run campaign -- NAME [N]\n\n${lines.join('\n')}`;
}
