// The floor: a server without rules that does what every durable answer with a signature must do, and nothing else: one
// row is on disk before it answers.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { serveBare } from './bare-server.ts';

async function serveFloor(folder: string): Promise<string> {
  const database = new DatabaseSync(join(folder, 'floor.db'));
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 4000');
  database.exec('create table certificate (id text primary key, der blob not null)');
  const insert = database.prepare('insert into certificate values (?, ?)');
  return await serveBare(database, { finish: ({ certificateId, der }) => void insert.run(certificateId, der) });
}

if (import.meta.main) process.send?.(await serveFloor(process.argv[2] ?? '.'));
