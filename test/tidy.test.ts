// Rules about the code itself, so that nobody has to remember them.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { VARIABLES } from '../src/config/config.ts';

const ROOT = new URL('../', import.meta.url).pathname;
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const SOURCES = globSync('src/**/*.ts', { cwd: ROOT }).sort();
const CODE = globSync('{src,test,bench,campaigns,examples}/**/*.{ts,js,mjs}', { cwd: ROOT });
const DOCUMENTS = globSync(['*.md', '{docs,examples}/**/*.md'], { cwd: ROOT });

/** Who may import whom. The outermost ring, files directly in src/, sees everything; what all may see, sees nothing. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  kernel: ['kernel'],
  domain: ['domain', 'kernel'],
  usecases: ['usecases', 'domain', 'kernel'],
  adapters: ['adapters', 'domain', 'kernel'],
  http: ['http', 'usecases', 'domain', 'kernel'],
  cli: ['cli', 'usecases', 'domain', 'kernel'],
  sandbox: ['sandbox', 'usecases', 'domain', 'kernel'],
  config: ['config', 'adapters', 'domain', 'kernel'],
  wiring: ['wiring', 'config', 'sandbox', 'cli', 'http', 'adapters', 'usecases', 'domain', 'kernel'],
};

const importsOf = (file: string): string[] =>
  [...read(file).matchAll(/^(?:import|export)[^'"]*?from\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]/gm)].map(
    ([, from, bare]) => from ?? bare ?? '',
  );

test('imports run one way', () => {
  for (const file of SOURCES) {
    const [, layer = ''] = file.split('/');
    const allowed = MAY_IMPORT[layer];
    if (layer.endsWith('.ts') && !allowed) continue;
    assert.ok(allowed, `${file}: the layer ${layer} is not in the table`);
    for (const specifier of importsOf(file).filter((one) => one.startsWith('.'))) {
      const target = normalize(join(dirname(file), specifier)).replace(/^src\//, '');
      assert.ok(allowed.includes(target.split('/')[0] ?? ''), `${file} must not import ${target}`);
    }
  }
});

test('the domain does no I/O, and has no clock and no randomness', () => {
  const IMPURE =
    /\bDate\.now\b|\bnew Date(?!\(\w)|\bMath\.random\b|\bcrypto\b|\bprocess\.|\bset(Timeout|Interval|Immediate)\b|\bfetch\(|\bperformance\.|\bimport\(/;
  for (const file of SOURCES.filter((one) => one.startsWith('src/domain/'))) {
    for (const specifier of importsOf(file)) assert.ok(specifier.startsWith('.'), `${file} imports ${specifier}`);
    assert.doesNotMatch(read(file), IMPURE, file);
  }
});

test('only the places that may, speak to the outside', () => {
  const OUTSIDE: Readonly<Record<string, RegExp>> = {
    'node:sqlite': /^src\/adapters\//,
    pg: /^src\/adapters\/store\/engine\/postgres\.ts$/,
    'node:http': /^src\/http\/|^src\/sandbox\/web-answerer\.ts$/,
    'node:https': /^src\/adapters\/egress\/|^src\/sandbox\/receiver\.ts$/,
    'node:dns/promises': /^src\/adapters\//,
    'node:child_process': /^$/,
  };
  for (const file of SOURCES) {
    for (const specifier of importsOf(file)) {
      const place = OUTSIDE[specifier];
      assert.ok(!place || place.test(file), `${file} imports ${specifier}`);
    }
  }
});

test('there is one way out: no other file opens a connection', () => {
  for (const file of SOURCES.filter((one) => !one.startsWith('src/adapters/egress/'))) {
    assert.doesNotMatch(
      read(file),
      /\bfetch\(|\b(net|tls|http2|https?)\.(connect|createConnection|request|get)\(/,
      file,
    );
  }
});

test('files stay short enough to hold one idea', () => {
  for (const file of SOURCES) assert.ok(read(file).split('\n').length <= 220, `${file} is too long`);
  for (const file of CODE) assert.ok(read(file).split('\n').length <= 360, `${file} is too long`);
  assert.ok(read('ARCHITECTURE.md').split('\n').length <= 150, 'ARCHITECTURE.md is too long');
});

test('every source file of more than a few lines says what it decides', () => {
  for (const file of SOURCES.filter((one) => read(one).split('\n').length > 60)) {
    assert.match(read(file), /^(\/\/|\/\*\*|#!)/, `${file} has no header`);
  }
});

test('nothing is skipped, exclusive or left unfinished', () => {
  const MARKS = [
    /\.(only|skip|todo)\(/,
    /\b(only|skip|todo): *true/,
    /\b(TOD[O]|FIX[M]E|XX[X]|HAC[K])\b/,
    /\bdebugger\b/,
  ];
  for (const file of CODE.filter((one) => one !== 'test/tidy.test.ts')) {
    for (const mark of MARKS) assert.doesNotMatch(read(file), mark, file);
  }
});

test('no drawer for what has no name', () => {
  for (const file of CODE) assert.doesNotMatch(file, /(^|\/)(utils?|helpers?|misc|common|types|index)(\.|\/)/);
});

test('links in documents lead somewhere', () => {
  for (const file of DOCUMENTS) {
    for (const [, target = ''] of read(file).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?:|mailto:|#)/.test(target)) continue;
      const path = join(dirname(file), target.replace(/#.*$/, ''));
      assert.ok(existsSync(join(ROOT, path)), `${file} links to ${target}`);
    }
  }
});

test('decision records are numbered without gaps, and each has its parts', () => {
  const records = globSync('docs/adr/*.md', { cwd: ROOT }).sort();
  for (const [index, file] of records.entries()) {
    const number = String(index + 1).padStart(4, '0');
    assert.match(file, new RegExp(`/${number}-[a-z0-9-]+\\.md$`));
    const text = read(file);
    assert.match(text, new RegExp(`^# ${number}\\. .+\\n`));
    for (const part of ['Status: ', '## Context', '## Decision', '## Consequences']) {
      assert.ok(text.includes(part), `${file} has no ${part}`);
    }
  }
});

test('every variable of the environment is documented, and every documented one exists', () => {
  const documented = new Set(read('docs/configuration.md').match(/\bRESEAL_[A-Z_]+\b/g));
  assert.deepEqual([...documented].sort(), Object.keys(VARIABLES).sort());
});

test('every dependency is pinned and argued in a line of its own', () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read('package.json'));
  const argued = read('docs/dependencies.md');
  for (const [name, version] of Object.entries<string>({
    ...dependencies,
    ...devDependencies,
    ...optionalDependencies,
  })) {
    assert.match(version, /^\d/, `${name} is not pinned to one version`);
    assert.ok(argued.includes(`\`${name}\``), `docs/dependencies.md does not argue ${name}`);
  }
});

test('the lock file names no place to download from', () => {
  assert.doesNotMatch(read('package-lock.json'), /"resolved"/);
});
