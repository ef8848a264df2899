// How a service ends: what its clients see meanwhile, and that nothing of it is left. The full version of the first is
// `npm run campaign -- shutdown`.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { endUnderLoad } from '../../campaigns/shutdown.ts';
import { newFolder } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { OLDER_NODE } from '../support/older-node.ts';
import { startReseal } from '../support/process.ts';
import { isRunning } from '../support/processes.ts';

const WAIT_MS = 20_000;

async function until(isSo: () => boolean, what: string): Promise<void> {
  for (const end = Date.now() + WAIT_MS; !isSo(); await sleep(10)) assert.ok(Date.now() < end, `not in time: ${what}`);
}

const settings = () => ({ RESEAL_DATA_DIR: newFolder(), RESEAL_PORT: '0', RESEAL_DRAIN_SECONDS: '300' });

rule('ops 33', 'sees no reset while the service ends', async (context) => {
  const report = await endUnderLoad({
    ...{ times: 1, workers: [2], clients: 8, drainSeconds: 2, pauseMs: 200, seed: 1 },
    print: (line) => context.diagnostic(line),
  });
  assert.deepEqual(report.broken, []);
  assert.equal(report.shutdowns, 1);
  assert.ok(report.answered > 16, `only ${report.answered} were answered`);
});

rule('ops 32', 'A second signal, half a second after the first or later, ends it at once', async () => {
  await using service = startReseal(['serve'], settings());
  const url = await service.listening();
  const ended = service.end('SIGTERM');
  await service.said(/"stopping"/);
  assert.equal((await fetch(`${url}/readyz`)).status, 503, 'for five minutes');
  assert.equal((await fetch(`${url}/healthz`)).status, 200);
  // Signals that come too soon count as the same one.
  while (isRunning(service.child.pid!)) {
    service.child.kill('SIGTERM');
    await sleep(50);
  }
  assert.equal(await ended, 1);
});

rule('ops 34', 'ends with it, even if it is killed', async (context) => {
  context.diagnostic(OLDER_NODE ? 'with the launcher in between' : 'no older Node here: the launcher is the service');
  await using launcher = startReseal(['serve'], settings(), OLDER_NODE);
  await launcher.listening();
  const pid = launcher.child.pid!;
  const launched = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  assert.equal(launched.length, OLDER_NODE ? 1 : 0);
  using cleanup = new DisposableStack();
  cleanup.defer(() => {
    for (const one of launched) if (isRunning(one)) process.kill(one, 'SIGKILL');
  });
  process.kill(pid, 'SIGKILL');
  await until(() => ![pid, ...launched].some(isRunning), 'both have ended');
});
