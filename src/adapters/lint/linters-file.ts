// Reads the operator's linters file: which linters a certificate is shown to before it is signed. Strict, like the products
// file: a misspelt key would silently weaken the gate.
import { readFileSync } from 'node:fs';
import { type AddressRule, parseAddressRule } from '../../domain/egress/addresses.ts';
import type { OutboundUrl } from '../../domain/egress/outbound.ts';
import { webUrl } from '../../domain/egress/url.ts';
import { LINT_SEVERITIES, type LintSeverity } from '../../domain/issuance/lint.ts';
import { EXIT, Problem } from '../../kernel/problem.ts';
import { LINT_FORMATS, type LintFormat } from './formats.ts';

export interface Linter {
  readonly name: string;
  readonly format: LintFormat;
  readonly source:
    | { readonly kind: 'command'; readonly command: readonly string[] }
    | { readonly kind: 'http'; readonly url: OutboundUrl; readonly allow: readonly AddressRule[] };
  readonly limitMs: number;
  /** Findings from here on refuse the certificate. */
  readonly failOn: LintSeverity;
  /** Rules of which findings are kept, and refuse nothing. */
  readonly ignore: ReadonlySet<string>;
}

const MAX_LINTERS = 8;
const MAX_LIMIT_MS = 30_000;
const DEFAULT_LIMIT_MS = 10_000;

/** Returns no linters if `file` is undefined. Throws a Problem. */
export function readLintersFile(file: string | undefined): Linter[] {
  if (file === undefined) return [];
  try {
    return parseLinters(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new Problem(
      EXIT.configuration,
      `RESEAL_LINTERS_FILE ${file} cannot be used: ${(error as Error).message}`,
      'Correct the file; docs/linters.md has an example.',
      { cause: error },
    );
  }
}

export function parseLinters(json: unknown): Linter[] {
  const { linters } = fields(json, 'file', ['linters']);
  if (!Array.isArray(linters) || linters.length === 0 || linters.length > MAX_LINTERS)
    throw new Error(`linters: write a list of 1 to ${MAX_LINTERS} linters`);
  const read = linters.map((one, index) => readLinter(one, `linters[${index}]`));
  if (new Set(read.map(({ name }) => name)).size < read.length) throw new Error('linters: each name may occur once');
  return read;
}

function readLinter(json: unknown, path: string): Linter {
  const row = fields(json, path, ['name', 'format', 'command', 'url', 'allow', 'limit_ms', 'fail_on', 'ignore']);
  const { name, limit_ms: limitMs = DEFAULT_LIMIT_MS } = row;
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9.-]{0,31}$/.test(name))
    throw new Error(`${path}.name: use lower-case letters, digits, dots and hyphens, at most 32`);
  if (!Number.isInteger(limitMs) || Number(limitMs) < 100 || Number(limitMs) > MAX_LIMIT_MS)
    throw new Error(`${path}.limit_ms: write a whole number from 100 to ${MAX_LIMIT_MS}`);
  return {
    name,
    format: oneOf(Object.keys(LINT_FORMATS) as LintFormat[], row.format, `${path}.format`),
    source: sourceOf(row, path),
    limitMs: Number(limitMs),
    failOn: oneOf(LINT_SEVERITIES, row.fail_on ?? 'error', `${path}.fail_on`),
    ignore: new Set(texts(row.ignore ?? [], `${path}.ignore`)),
  };
}

function sourceOf({ command, url, allow = [] }: Record<string, unknown>, path: string): Linter['source'] {
  if ((command === undefined) === (url === undefined)) throw new Error(`${path}: write either command or url`);
  if (command !== undefined) {
    const words = texts(command, `${path}.command`);
    if (words.length === 0) throw new Error(`${path}.command: name a program`);
    return { kind: 'command', command: words };
  }
  const parsed = typeof url === 'string' ? webUrl(url) : undefined;
  if (!parsed) throw new Error(`${path}.url: write an http or https URL`);
  const rules = texts(allow, `${path}.allow`).map((text) => {
    const rule = parseAddressRule(text);
    if (!rule) throw new Error(`${path}.allow: ${text} is no address, network, or address and port`);
    return rule;
  });
  return {
    kind: 'http',
    url: { ...parsed, port: parsed.port ?? (parsed.scheme === 'https' ? 443 : 80) },
    allow: rules,
  };
}

function fields(json: unknown, path: string, known: readonly string[]): Record<string, unknown> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new Error(`${path}: write an object`);
  const unknown = Object.keys(json).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new Error(`${path}.${unknown}: there is no such setting; use ${known.join(', ')}`);
  return json as Record<string, unknown>;
}

function oneOf<T extends string>(known: readonly T[], value: unknown, path: string): T {
  const found = known.find((one) => one === value);
  if (found === undefined) throw new Error(`${path}: choose one of ${known.join(', ')}`);
  return found;
}

function texts(value: unknown, path: string): string[] {
  if (!Array.isArray(value) || value.some((one) => typeof one !== 'string' || one === ''))
    throw new Error(`${path}: write a list of texts`);
  return value;
}
