#!/usr/bin/env node
// Launcher: runs Reseal in this Node, or in the pinned one if this Node is too old. Plain JavaScript, to print a useful
// error on the host's Node 20. Under `npm start` this already is the pinned runtime; under systemd or a global
// install it is the host's, and the pinned binary is in node_modules.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import module from 'node:module';
import { constants } from 'node:os';
import { CACHE, isAsRecorded, pinnedRuntime } from './pinned-runtime.mjs';

// The first version with Argon2.
const OLDEST = [24, 7];
/** Tells the launched process that its channel leads to the launcher, and not to a parent that may close it. */
const LAUNCHED = 'LAUNCHED_BY_RESEAL';

const pinned = pinnedRuntime();
const [major, minor] = process.versions.node.split('.').map(Number);
if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) {
  // Under `npm start`. Another Node is vouched for by its installer.
  if (pinned?.binary === process.execPath) requireRecorded(pinned);
  endWithLauncher();
  // Halves start-up time. If the folder is not writable, nothing is cached.
  module.enableCompileCache(CACHE);
  // A checkout has src/; a package has dist/, because Node does not strip types below node_modules.
  await import(existsSync(new URL('../src/main.ts', import.meta.url)) ? '../src/main.ts' : '../dist/main.js');
} else {
  if (!pinned) refuse();
  requireRecorded(pinned);
  runIn(pinned.binary);
}

/** Refuses a pinned runtime that is not the recorded one. */
function requireRecorded(runtime) {
  if (isAsRecorded(runtime)) return;
  process.stderr.write(
    `reseal: the runtime ${runtime.binary} is not the one that was recorded: its SHA-256 is not ${runtime.sha256}.\n` +
      'What to do: delete node_modules and install again. If that does not help, do not run it, and report it (SECURITY.md).\n',
  );
  process.exit(3);
}

function refuse() {
  process.stderr.write(
    `reseal: Node ${process.versions.node} is too old (Reseal needs ${OLDEST.join('.')} or newer), and the pinned runtime is not installed, ` +
      `or there is none for ${process.platform}-${process.arch}.\n` +
      `What to do: install Node 24 (${OLDEST.join('.')} or newer), or install Reseal again without --omit=optional.\n`,
  );
  process.exit(3);
}

function runIn(binary) {
  // A checkout strips the console's types by an interface of Node that still warns.
  const child = spawn(binary, ['--disable-warning=ExperimentalWarning', ...process.argv.slice(1)], {
    env: { ...process.env, [LAUNCHED]: 'yes' },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  // Forwarded, because the child shuts down gracefully; otherwise a supervisor's SIGTERM would orphan it.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    process.stderr.write(`reseal: cannot start ${binary}: ${error.message}\n`);
    process.exit(3);
  });
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}

/** The channel closes when the launcher is gone, however it ended: what it has launched must not outlive it. */
function endWithLauncher() {
  if (process.env[LAUNCHED] === undefined) return;
  delete process.env[LAUNCHED];
  process.once('disconnect', () => process.exit(1));
  process.channel?.unref();
}
