// reseal serve | sandbox | sandbox reset | sandbox callbacks | doctor
import { type Diagnostic, EXIT, Problem } from '../kernel/problem.ts';
import type { Command } from './command.ts';
import { CRL, listOf } from './values.ts';

export const serve: Command = {
  store: 'creates',
  about: 'serve, with configuration from the environment (see docs/configuration.md)',
  examples: ['serve', 'serve --workers 2', 'serve   # with RESEAL_DATABASE_URL=postgres://… in the environment'],
  positionals: [],
  options: {
    workers: {
      type: 'string',
      about: 'processes that answer requests, instead of RESEAL_WORKERS; 0 serves from one process',
    },
  },
  async run({ options }, context) {
    await context.serve(options.workers as string | undefined);
    return undefined;
  },
};

export const sandbox: Command = {
  store: 'creates',
  about: 'serve on this machine with demo accounts and orders; works offline',
  examples: ['sandbox', 'sandbox   # with RESEAL_PORT=8081 in the environment'],
  positionals: [],
  options: {},
  async run(_given, context) {
    await context.serveSandbox();
    return undefined;
  },
};

export const sandboxReset: Command = {
  store: 'none',
  about: 'delete the sandbox’s data; the next start creates new demo data',
  examples: ['sandbox reset'],
  positionals: [],
  options: {},
  async run(_given, context) {
    const { folder, deleted } = await context.resetSandbox();
    return {
      json: { folder, deleted },
      text: deleted.length === 0 ? `Nothing to delete in ${folder}.` : `Deleted in ${folder}: ${deleted.join(', ')}`,
    };
  },
};

export const sandboxCallbacks: Command = {
  store: 'none',
  about: 'show the last callbacks received by the sandbox’s receiver, newest first',
  examples: ['sandbox callbacks', 'sandbox callbacks --json'],
  positionals: [],
  options: {},
  async run(_given, context) {
    const sandbox = await context.readSandbox();
    if (!sandbox) throw new Problem(EXIT.refused, 'there is no sandbox here', 'Start one first: reseal sandbox');
    const { callbacks } = sandbox.receiver;
    const text = callbacks.map((one) => JSON.stringify(one, null, 2)).join('\n');
    return { json: { callbacks }, text: text || 'No callback has arrived yet.' };
  },
};

const LABELS = { ok: 'ok     ', warning: 'WARNING', problem: 'PROBLEM' } as const;

export const lineOf = ({ state, check, text, remedy }: Diagnostic): string =>
  `${LABELS[state]}  ${check.padEnd(13)}  ${text}${remedy === undefined ? '' : `\n${' '.repeat(24)}What to do: ${remedy}`}`;

export const doctor: Command = {
  store: 'none',
  about:
    'check configuration, products, runtime, SM2, files, store, clock, issuers, callbacks, revocation and resolver',
  examples: ['doctor', 'doctor --json', 'doctor --backup /backups/reseal.db'],
  positionals: [],
  options: {
    backup: { type: 'string', about: 'check this backup as well, as "backup verify" does' },
    crl: { ...CRL, about: 'published CRLs (file, folder or URL; repeatable): was the store rolled back?' },
  },
  async run({ options: { backup, crl } }, context) {
    const findings = await context.diagnose();
    if (typeof backup === 'string') findings.push(...(await context.withBackups(({ verify }) => verify(backup))));
    const crls = listOf(crl);
    if (crls.length > 0) findings.push(await context.withBackups(({ compareCrls }) => compareCrls(crls)));
    const problems = findings.filter(({ state }) => state === 'problem').length;
    const warnings = findings.filter(({ state }) => state === 'warning').length;
    return {
      json: { findings },
      text: `${findings.map(lineOf).join('\n')}\n\n${problems} problems, ${warnings} warnings`,
      exitCode: problems === 0 ? EXIT.ok : EXIT.refused,
    };
  },
};
