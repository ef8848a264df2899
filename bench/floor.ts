// Servers without rules, each with one step more than the one before. The floor is what every durable answer with a
// signature must do: one row is on disk before it answers.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Steps, serveBare } from './bare-server.ts';
import { askForCaa, openStore, sameRows } from './same-rows.ts';

interface Server {
  readonly about: string;
  readonly open: (folder: string) => DatabaseSync;
  readonly steps: (database: DatabaseSync, nameServer: string) => Steps;
}

export const SERVERS = {
  http: { about: 'HTTP and JSON', open: openOwn, steps: () => ({ signs: false }) },
  signature: { about: 'import of the key, verify, sign', open: openOwn, steps: () => ({ signs: true }) },
  floor: { about: 'one durable row (the floor server)', open: openOwn, steps: oneRow },
  rows: {
    about: 'the rows of a reissue instead, in two commits',
    open: openStore,
    steps: (database) => ({ signs: true, ...sameRows(database) }),
  },
  caa: {
    about: 'CAA asked for three names',
    open: openStore,
    steps: (database, nameServer) => ({ signs: true, ...sameRows(database), ask: askForCaa(nameServer) }),
  },
} satisfies Readonly<Record<string, Server>>;
export type ServerName = keyof typeof SERVERS;

function openOwn(folder: string): DatabaseSync {
  const database = new DatabaseSync(join(folder, 'floor.db'));
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 4000');
  database.exec('create table certificate (id text primary key, der blob not null)');
  return database;
}

function oneRow(database: DatabaseSync): Steps {
  const insert = database.prepare('insert into certificate values (?, ?)');
  return { signs: true, finish: ({ certificateId, der }) => void insert.run(certificateId, der) };
}

if (import.meta.main) {
  const [name, folder = '.', nameServer = ''] = process.argv.slice(2);
  const { open, steps }: Server = SERVERS[name as ServerName];
  const database = open(folder);
  process.send?.(await serveBare(database, steps(database, nameServer)));
}
