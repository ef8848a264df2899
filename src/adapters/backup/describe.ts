// Describes and examines a store that does not change meanwhile: a backup file, or a snapshot of PostgreSQL.
import { hash } from 'node:crypto';
import { differences, type Manifest, manifestOf } from '../../domain/backup.ts';
import { type Diagnostic, Problem } from '../../kernel/problem.ts';
import { SealBroken, type SealKey, sealerWith } from '../seal/seal.ts';
import { storeContents } from '../store/engine/contents.ts';
import type { Engine } from '../store/engine/engine.ts';
import { previewMigrations, readMigrations } from '../store/engine/migrations.ts';
import type { Db } from '../store/engine/schema.ts';
import { findUnopenable, sealedPlacesIn, sealKeysInUse } from '../store/engine/sealed.ts';
import { crlsIn } from '../store/revocation/crls.ts';

export const sha256 = (text: string): string => hash('sha256', text);

export async function describeStore(db: Db, engine: Engine, takenAt: number): Promise<Manifest> {
  const heads = await crlsIn(db).heads();
  return manifestOf(
    {
      taken_at: new Date(takenAt).toISOString(),
      schema: await schemaOf(db),
      tables: await storeContents(db, engine),
      seal_key_ids: [...(await sealKeysInUse(db, await sealedPlacesIn(db, engine)))].sort(),
      crls: heads.map(({ issuerId, shard, number }) => ({ issuer_id: issuerId, shard, number })),
    },
    sha256,
  );
}

async function schemaOf(db: Db): Promise<number> {
  const row = await db
    .selectFrom('migration')
    .select('number')
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
  return row.number;
}

const REPLACE = 'Use another backup, and find out what damaged this one.';
const MAX_SHOWN = 5;
const shown = (list: readonly string[]): string =>
  list.slice(0, MAX_SHOWN).join('; ').replace(/\s+/g, ' ') +
  (list.length > MAX_SHOWN ? `; and ${list.length - MAX_SHOWN} more` : '');

/** Proves what can be proven without starting a service on it. Without a manifest nothing is compared. */
export async function examineStore(
  db: Db,
  engine: Engine,
  { manifest, keys }: { readonly manifest: Manifest | undefined; readonly keys: readonly SealKey[] | undefined },
): Promise<Diagnostic[]> {
  const migrations = await examineMigrations(db, engine);
  // Tables of an unknown version cannot be read.
  if (migrations.state === 'problem') return [migrations];
  const faults = await engine.integrityFaults(db);
  const integrity: Diagnostic =
    faults.length === 0
      ? { check: 'integrity', state: 'ok', text: 'the database is intact' }
      : { check: 'integrity', state: 'problem', text: `the database is damaged: ${shown(faults)}`, remedy: REPLACE };
  if (faults.length > 0) return [migrations, integrity];
  return [migrations, integrity, await examineContents(db, engine, manifest), await examineSeals(db, engine, keys)];
}

async function examineMigrations(db: Db, engine: Engine): Promise<Diagnostic> {
  const check = 'schema';
  try {
    const known = readMigrations(engine.name);
    const pending = await previewMigrations(db, known);
    if (!pending) return { check, state: 'problem', text: 'there are no tables in it', remedy: REPLACE };
    const schema = await schemaOf(db);
    const text = pending.length === 0 ? `schema ${schema}` : `schema ${schema}, which the next start migrates`;
    return { check, state: 'ok', text };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { check, state: 'problem', text: error.message, remedy: error.remedy };
  }
}

async function examineContents(db: Db, engine: Engine, manifest: Manifest | undefined): Promise<Diagnostic> {
  const check = 'contents';
  const tables = await storeContents(db, engine);
  const rows = tables.reduce((sum, one) => sum + one.rows, 0);
  const counted = `${rows} rows in ${tables.length} tables`;
  if (!manifest) {
    const text = `${counted}; compared with nothing, because no manifest was given`;
    return { check, state: 'warning', text, remedy: 'Name the manifest, if there is one.' };
  }
  const differing = differences(manifest, { schema: await schemaOf(db), tables });
  return differing.length === 0
    ? { check, state: 'ok', text: `${counted}, as in the manifest ${manifest.digest.slice(0, 16)}…` }
    : { check, state: 'problem', text: `it differs from its manifest: ${shown(differing)}`, remedy: REPLACE };
}

async function examineSeals(db: Db, engine: Engine, keys: readonly SealKey[] | undefined): Promise<Diagnostic> {
  const check = 'seal keys';
  const places = await sealedPlacesIn(db, engine);
  const needed = [...(await sealKeysInUse(db, places))].sort();
  const remedy = 'Put the seal key of that time where RESEAL_SEAL_KEY_FILE or RESEAL_SEAL_KEY names it.';
  const missing = needed.filter((id) => !keys?.some((key) => key.id === id));
  if (missing.length > 0) {
    return { check, state: 'problem', text: `sealed values need the keys ${missing.join(', ')}`, remedy };
  }
  const closed = keys ? await findUnopenable(db, sealerWith(keys), { places }) : [];
  return closed.length === 0
    ? { check, state: 'ok', text: `every sealed value opens with ${needed.join(', ') || 'any key: there is none'}` }
    : { check, state: 'problem', text: `sealed values do not open: ${shown(closed)}`, remedy: REPLACE };
}

/** Reports any failure as a diagnostic. */
export function unreadable(error: unknown): Diagnostic {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const text = cause instanceof SealBroken ? 'a sealed value does not open' : String((cause as Error).message ?? cause);
  return { check: 'integrity', state: 'problem', text: `it cannot be read: ${text}`, remedy: REPLACE };
}
