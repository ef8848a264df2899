// Conventions of the code base, enforced.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { VARIABLES } from '../src/config/variables.ts';
import { importCycles, importGraph, importsOf, upwardImports } from './support/imports.ts';

const ROOT = new URL('../', import.meta.url).pathname;
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const SOURCES = globSync('src/**/*.ts', { cwd: ROOT }).sort();
/** Without what is made from the OpenAPI document. */
const CLIENT = globSync('clients/*/src/*.ts', { cwd: ROOT }).filter(
  (file) => !/\/(openapi|operations)\.ts$/.test(file),
);
const CODE = [...globSync('{src,test,bench,campaigns,examples}/**/*.{ts,js,mjs}', { cwd: ROOT }), ...CLIENT];
const DOCUMENTS = globSync(['*.md', '{docs,examples}/**/*.md', 'clients/*/*.md'], { cwd: ROOT });

/** Which layers each layer may import from. src/main.ts may import all. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  // The types of the interface are made for the client; only shell/wire.ts imports them, and only as types.
  console: ['console', 'typescript'],
  kernel: ['kernel'],
  domain: ['domain', 'kernel'],
  usecases: ['usecases', 'domain', 'kernel'],
  adapters: ['adapters', 'domain', 'kernel'],
  http: ['http', 'usecases', 'domain', 'kernel'],
  sandbox: ['sandbox', 'usecases', 'domain', 'kernel'],
  cli: ['cli', 'sandbox', 'usecases', 'domain', 'kernel'],
  config: ['config', 'adapters', 'domain', 'kernel'],
  wiring: ['wiring', 'config', 'sandbox', 'cli', 'http', 'adapters', 'usecases', 'domain', 'kernel'],
};

/** Folders from the bottom up: each may import from itself and from those listed before it. */
const RANKING = [
  'clients/typescript/src/openapi.ts',
  'src/console/shell',
  'src/console/pki',
  'src/console/pages',
  'src/console/app.ts',
  'src/console/reference',
  'src/kernel',
  ...['clock', 'page', 'rate', 'secret', 'ids', 'errors', 'canonical-json', 'strict-json', 'backup'].map(
    (leaf) => `src/domain/${leaf}.ts`,
  ),
  'src/domain/egress',
  'src/domain/certificate',
  'src/domain/catalog',
  'src/domain/access',
  'src/domain/cloud-keys',
  'src/domain/validation',
  'src/domain/revocation',
  'src/domain/callbacks',
  'src/domain/issuance',
  'src/domain/console',
  'src/domain/acme',
  'src/domain/support',
  'src/domain/store.ts',
  'src/usecases/access',
  'src/usecases/lease',
  'src/usecases/revocation',
  'src/usecases/validation',
  'src/usecases/issuance',
  'src/usecases/callbacks',
  'src/usecases/cloud-keys',
  'src/usecases/console',
  'src/usecases/acme',
  'src/usecases/support',
  'src/adapters/der',
  'src/adapters/seal',
  'src/adapters/catalog',
  'src/adapters/dns',
  'src/adapters/metrics',
  'src/adapters/egress',
  'src/adapters/sm2',
  'src/adapters/ca',
  'src/adapters/ca/status',
  'src/adapters/ca/custody',
  'src/adapters/hsm',
  'src/adapters/lint',
  'src/adapters/acme',
  'src/adapters/workers',
  'src/adapters/keys',
  'src/adapters/store/engine',
  'src/adapters/store/access',
  'src/adapters/store/callbacks',
  'src/adapters/store/issuance',
  'src/adapters/store/validation',
  'src/adapters/store/revocation',
  'src/adapters/store/cloud-keys',
  'src/adapters/store/console',
  'src/adapters/store/acme',
  'src/adapters/store/support',
  'src/adapters/store/store.ts',
  'src/adapters/backup',
  'src/adapters/doctor',
  'src/http/front',
  'src/http/access',
  'src/http/catalog',
  'src/http/revocation',
  'src/http/issuance',
  'src/http/validation',
  'src/http/callbacks',
  'src/http/cloud-keys',
  'src/http/acme',
  'src/http/status',
  'src/http/pages',
  'src/http/console',
  'src/http/server.ts',
  'src/sandbox',
  'src/cli',
  'src/config',
  'src/wiring',
  'src/main.ts',
];

/** The console's one tie to the service: types of the answers that its pages show. Nothing of it reaches a browser. */
const WIRE = 'src/console/pages/operator/wire.ts';
const GRAPH = importGraph(
  SOURCES.filter((file) => file !== WIRE),
  read,
);

test('layers import only from the layers in their row of the table', () => {
  for (const [file, targets] of GRAPH) {
    const [, layer = ''] = file.split('/');
    if (layer === 'main.ts') continue;
    const allowed = MAY_IMPORT[layer];
    assert.ok(allowed, `${file}: the layer ${layer} is not in the table`);
    for (const target of targets) {
      assert.ok(allowed.includes(target.split('/')[1] ?? ''), `${file} must not import ${target}`);
    }
  }
});

test('the console takes nothing but types from the routes of operators', () => {
  const [exported, ...others] = read(WIRE)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('//'));
  assert.equal(exported, "export type * from '../../../http/console/operator-schemas.ts';");
  assert.deepEqual(others, []);
});

test('the console takes nothing but types from the client, in one place', () => {
  const importers = SOURCES.filter((file) => /\/clients\/|from '[^']*clients\//.test(read(file)));
  assert.deepEqual(importers, ['src/console/shell/wire.ts']);
  assert.match(
    read('src/console/shell/wire.ts'),
    /^import type \{ components \} from '[./]+clients\/typescript\/src\/openapi\.ts';$/m,
  );
});

test('there is no import cycle, and no import from a lower folder to a higher one', (context) => {
  const [circles, upward] = [importCycles(GRAPH), upwardImports(GRAPH, RANKING)];
  context.diagnostic(`${circles.length} circles and ${upward.length} upward edges among ${SOURCES.length} files`);
  assert.deepEqual(circles, []);
  assert.deepEqual(upward, []);
  const tools = importGraph(
    CODE.filter((file) => /^(bench|campaigns|test|clients)\//.test(file)),
    read,
  );
  assert.deepEqual(importCycles(tools), []);
});

test('a planted cycle and a planted upward import are found', () => {
  const issue = 'src/usecases/issuance/issue-pending.ts';
  const check = 'src/usecases/validation/check-names.ts';
  const planted = new Map(GRAPH).set(check, [...(GRAPH.get(check) ?? []), issue]);
  assert.deepEqual(upwardImports(planted, RANKING), [`${check} imports ${issue}`]);
  assert.ok(importCycles(planted).some((circle) => circle.includes(issue) && circle.includes(check)));
});

test('the test runner takes no source file for a test file', () => {
  // The patterns of node --test.
  for (const file of SOURCES) assert.doesNotMatch(file, /[._-]test\.ts$|\/test(-[^/]*)?\.ts$|\/test\//, file);
});

test('npm test runs every test file once', () => {
  const patterns = [...JSON.parse(read('package.json')).scripts.test.matchAll(/"([^"]+)"/g)].map(([, one]) => one);
  const find = (pattern: string): string[] => globSync(pattern, { cwd: ROOT });
  const run = patterns
    .flatMap(find)
    .flatMap((file) => (file.endsWith('/suite.ts') ? find(`${dirname(file)}/**/*.test.ts`) : [file]));
  assert.deepEqual(run.sort(), find('test/**/*.test.ts').sort());
});

test('the client imports nothing but its own files, and uses no global that only Node has', () => {
  const OF_NODE = /\b(process|Buffer|global|require|__dirname|setImmediate)\b(?=[.([])/;
  for (const file of CLIENT) {
    for (const specifier of importsOf(read(file))) assert.match(specifier, /^\.\/[\w-]+\.ts$/, file);
    assert.doesNotMatch(read(file), OF_NODE, file);
  }
  const { dependencies, private: isPrivate, license, version } = JSON.parse(read('clients/typescript/package.json'));
  assert.equal(dependencies, undefined);
  const { version: ours, license: our } = JSON.parse(read('package.json'));
  assert.deepEqual([isPrivate, license, version], [true, our, ours]);
});

test('the domain does no I/O, and has no clock and no randomness', () => {
  const IMPURE =
    /\bDate\.now\b|\bnew Date(?!\(\w)|\bMath\.random\b|\bcrypto\b|\bprocess\.|\bset(Timeout|Interval|Immediate)\b|\bfetch\(|\bperformance\.|\bimport\(/;
  for (const file of SOURCES.filter((one) => one.startsWith('src/domain/'))) {
    for (const specifier of importsOf(read(file))) assert.ok(specifier.startsWith('.'), `${file} imports ${specifier}`);
    assert.doesNotMatch(read(file), IMPURE, file);
  }
});

test('only the listed places import I/O modules', () => {
  const OUTSIDE: Readonly<Record<string, RegExp>> = {
    'node:sqlite': /^src\/adapters\//,
    pg: /^src\/adapters\/store\/engine\/(postgres|pipelined-query|statement-groups)\.ts$/,
    'node:http': /^src\/http\/|^src\/sandbox\/(web|challenge)-server\.ts$/,
    'node:https': /^src\/adapters\/egress\/|^src\/sandbox\/receiver\.ts$|^src\/http\/front\/listener\.ts$/,
    'node:dns/promises': /^src\/adapters\//,
    'node:dgram': /^src\/adapters\/dns\/udp\.ts$|^src\/sandbox\/dns-server\.ts$/,
    'node:child_process': /^src\/adapters\/(lint\/command-linter|hsm\/signer)\.ts$/,
    koffi: /^src\/adapters\/hsm\/cryptoki\.ts$/,
  };
  for (const file of SOURCES) {
    for (const specifier of importsOf(read(file))) {
      const place = OUTSIDE[specifier];
      assert.ok(!place || place.test(file), `${file} imports ${specifier}`);
    }
  }
});

test('only src/adapters/egress opens outbound connections, and DNS those to its resolvers', () => {
  // DNS over TCP connects to the operator's resolvers only, never to an address from a request or a response.
  // Modules of the console run in browsers, whose policy allows requests to this service only.
  const mayConnect = (file: string) =>
    /^src\/(adapters\/egress|console)\//.test(file) || file === 'src/adapters/dns/tcp.ts';
  for (const file of SOURCES.filter((one) => !mayConnect(one))) {
    assert.doesNotMatch(
      read(file),
      /\bfetch\(|\b(net|tls|http2|https?)\.(connect|createConnection|request|get)\(/,
      file,
    );
  }
});

test('files stay within the length limit', () => {
  for (const file of [...SOURCES, ...CLIENT]) assert.ok(read(file).split('\n').length <= 350, `${file} is too long`);
  for (const file of CODE) assert.ok(read(file).split('\n').length <= 360, `${file} is too long`);
  assert.ok(read('ARCHITECTURE.md').split('\n').length <= 220, 'ARCHITECTURE.md is too long');
});

test('non-null assertions stay rare: types say what is there', (context) => {
  const ASSERTION = /[\w\])]!(?=[.),;[ ]|$)/gm;
  const code = (file: string) => read(file).replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  const found = [...SOURCES, ...CLIENT].flatMap((file) =>
    [...code(file).replaceAll('!=', '').matchAll(ASSERTION)].map(() => file),
  );
  context.diagnostic(`${found.length} non-null assertions in src and clients`);
  assert.ok(found.length <= 40, found.join(' '));
});

test('every source file of more than 60 lines has a header comment', () => {
  for (const file of [...SOURCES, ...CLIENT].filter((one) => read(one).split('\n').length > 60)) {
    assert.match(read(file), /^(\/\/|\/\*\*|#!)/, `${file} has no header`);
  }
});

test('no test is skipped or exclusive, and no code marked unfinished', () => {
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

test('no file or folder has a catch-all name', () => {
  for (const file of CODE) assert.doesNotMatch(file, /(^|\/)(utils?|helpers?|misc|common|types|index)(\.|\/)/);
});

test('relative links in documents exist', () => {
  for (const file of DOCUMENTS) {
    for (const [, target = ''] of read(file).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?:|mailto:|#)/.test(target)) continue;
      const path = join(dirname(file), target.replace(/#.*$/, ''));
      assert.ok(existsSync(join(ROOT, path)), `${file} links to ${target}`);
    }
  }
});

test('decision records are numbered without gaps, and each has its sections', () => {
  const records = globSync('docs/adr/[0-9]*.md', { cwd: ROOT }).sort();
  const listed = read('docs/adr/README.md');
  for (const [index, file] of records.entries()) {
    const number = String(index + 1).padStart(4, '0');
    assert.match(file, new RegExp(`/${number}-[a-z0-9-]+\\.md$`));
    assert.ok(listed.includes(`(${file.slice('docs/adr/'.length)})`), `docs/adr/README.md does not list ${file}`);
    const text = read(file);
    assert.match(text, new RegExp(`^# ${number}\\. .+\\n`));
    for (const part of ['Status: ', '## Context', '## Decision', '## Consequences']) {
      assert.ok(text.includes(part), `${file} has no ${part}`);
    }
  }
});

test('every environment variable is documented, and every documented one exists', () => {
  const documented = new Set(read('docs/configuration.md').match(/\bRESEAL_[A-Z_]+\b/g));
  assert.deepEqual([...documented].sort(), Object.keys(VARIABLES).sort());
});

test('every dependency is pinned and justified in docs/dependencies.md', () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read('package.json'));
  const argued = read('docs/dependencies.md');
  for (const [name, version] of Object.entries<string>({
    ...dependencies,
    ...devDependencies,
    ...optionalDependencies,
  })) {
    assert.match(version, /^\d/, `${name} is not pinned to one version`);
    assert.ok(argued.includes(`\`${name}\``), `docs/dependencies.md does not justify ${name}`);
  }
});

test('the lock file has no download URLs', () => {
  assert.doesNotMatch(read('package-lock.json'), /"resolved"/);
});
