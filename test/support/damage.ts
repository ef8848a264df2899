// Damages the files of a stopped store, as a failing disk does.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** Overwrites the root page of a table or an index with garbage. */
export function damageSqlite(file: string, name: string): void {
  const database = new DatabaseSync(file);
  const row = database.prepare('select rootpage from sqlite_master where name = ?').get(name);
  const size = Number(database.prepare('pragma page_size').get()?.page_size);
  // Otherwise the page may still be in the WAL.
  database.exec('pragma wal_checkpoint(truncate)');
  database.close();
  for (const suffix of ['-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
  const bytes = readFileSync(file);
  // The first page has the schema and the header of the file.
  const end = Number(row?.rootpage ?? 1) * size;
  writeFileSync(file, bytes.fill(0xa5, end - size, end));
}

/** Damages the first page of a file of a stopped PostgreSQL: its checksum is wrong from then on. */
export function damagePostgres(file: string): void {
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xa5, 4_000, 4_100));
}
