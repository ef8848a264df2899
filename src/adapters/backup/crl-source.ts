// Reads CRLs for a restore from where the operator says: a file, a folder of files, or a URL. The operator chooses the
// target, so private addresses are allowed, except those that the outbound function never calls. Bounded in size and time.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { network } from '../../domain/egress/addresses.ts';
import type { CallOut } from '../../domain/egress/outbound.ts';
import { webUrl } from '../../domain/egress/url.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { callOut, DEFAULT_LIMITS } from '../egress/call-out.ts';

/** About two million entries; a shard of a busy authority has some ten thousand. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_FILES = 1_000;
const FETCH_MS = 60_000;
const ANYWHERE = ['0.0.0.0/0', '::/0'].map((range) => ({ ...network(range), port: null }));

export interface FoundCrl {
  /** A path or a URL, for messages. */
  readonly source: string;
  readonly bytes: Uint8Array;
}

/** Throws a Problem if a source cannot be read, or is too large. */
export async function readCrlSources(
  sources: readonly string[],
  dnsServers: readonly string[],
): Promise<readonly FoundCrl[]> {
  const call = callOut({
    dnsServers,
    extraRoots: [],
    userAgent: 'Reseal-Restore/1',
    limits: { ...DEFAULT_LIMITS, bodyMs: FETCH_MS },
  });
  const found: FoundCrl[] = [];
  for (const source of sources) {
    if (/^https?:/i.test(source)) found.push({ source, bytes: await fetchCrl(source, call) });
    else for (const file of filesAt(source)) found.push({ source: file, bytes: readBounded(file) });
  }
  return found;
}

async function fetchCrl(source: string, call: CallOut): Promise<Uint8Array> {
  const parsed = webUrl(source);
  if (!parsed) throw unusable(source, 'it is not a URL that can be called', 'Write it like http://192.0.2.1/0.crl');
  const url = { ...parsed, port: parsed.port ?? (parsed.scheme === 'https' ? 443 : 80) };
  const policy = { allow: ANYWHERE, deny: [], totalMs: FETCH_MS, maxBodyBytes: MAX_BYTES };
  const outcome = await call({ url, method: 'GET', headers: {}, body: '', policy });
  const remedy = 'Fetch it with another tool, and name the file.';
  if (outcome.kind === 'private') throw unusable(source, 'its address is never called', remedy);
  if (outcome.kind === 'failed') throw unusable(source, outcome.reason, remedy);
  if (outcome.status !== 200) throw unusable(source, `it answers ${outcome.status}`, remedy);
  return outcome.body;
}

function filesAt(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    const files = readdirSync(path, { withFileTypes: true }).filter((one) => one.isFile());
    if (files.length > MAX_FILES) throw unusable(path, `it has ${files.length} files`, `Give at most ${MAX_FILES}.`);
    return files.map(({ name }) => join(path, name)).sort();
  } catch (error) {
    throw readProblem(error, path);
  }
}

function readBounded(file: string): Uint8Array {
  try {
    const { size } = statSync(file);
    if (size > MAX_BYTES) throw unusable(file, `it has ${size} bytes`, `A CRL of more than ${MAX_BYTES} is not read.`);
    return readFileSync(file);
  } catch (error) {
    throw readProblem(error, file);
  }
}

const readProblem = (error: unknown, path: string): Problem =>
  error instanceof Problem
    ? error
    : unusable(path, (error as NodeJS.ErrnoException).code ?? String(error), 'Name a file that this user may read.');

const unusable = (source: string, reason: string, remedy: string): Problem =>
  new Problem(EXIT.usage, `--crl ${source} cannot be used: ${reason}`, remedy);
