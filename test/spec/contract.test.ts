// The compliance report: every line of the contract is proven by a test that quotes it, or is listed as pending. Read
// from the sources: a rule counts only if the call is written out in full, so that one behind a condition or a variable
// does not.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { CONTRACT, CONTRACT_TEXT, parseContract, recordsIn } from '../support/contract.ts';
import { PENDING } from './pending.ts';

const ROOT = new URL('../../', import.meta.url);

/** rule('id', 'quote', …), written out in full. */
const CALL = /^ *rule\(\s*'([^']+)',\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/gm;

/** Code that certainly runs when the file does: the top level, and the bodies of top-level loops. */
export function surelyRun(source: string): string {
  const lines = source.replace(/\/\*.*?\*\//gs, '').split('\n');
  let isInLoop = false;
  return lines
    .map((line) => {
      if (/^for (await )?\(/.test(line)) isInLoop = true;
      else if (/^\S/.test(line)) isInLoop = false;
      // Deeper than the loop's body there may be a condition.
      return /^rule\(/.test(line) || (isInLoop && /^ {2}rule\(/.test(line)) || !/^ *rule\(/.test(line) ? line : '';
    })
    .join('\n');
}

const QUOTED = globSync('test/**/*.test.ts', { cwd: ROOT }).flatMap((file) =>
  [...surelyRun(readFileSync(new URL(file, ROOT), 'utf8')).matchAll(CALL)].map(([, id = '', single, double]) => ({
    file,
    id,
    quote: (single ?? double ?? '').replace(/\\(.)/g, '$1'),
  })),
);
const PROVEN = new Set(QUOTED.map(({ id }) => id));
const RECORDS = recordsIn(CONTRACT_TEXT);
const WAITING = Object.values<readonly string[]>(PENDING).flat();

test('every quote is in the contract, on the line it names', () => {
  for (const { file, id, quote } of QUOTED) {
    assert.ok(CONTRACT.has(id), `${file} quotes "${id}", which CONTRACT.md does not have`);
    assert.ok(CONTRACT.get(id)?.includes(quote), `${file} misquotes "${id}": ${quote}`);
    // A quote of two words would match any line.
    assert.ok(quote.length >= 25, `${file} quotes too little of "${id}": ${quote}`);
  }
});

test('every line of the contract is proven or listed as pending', () => {
  const unproven = [...CONTRACT.keys()].filter((id) => !PROVEN.has(id) && !WAITING.includes(id));
  assert.deepEqual(unproven, []);
});

test('the pending list has existing lines only, each once, and none already proven', () => {
  for (const id of WAITING) {
    assert.ok(CONTRACT.has(id), `pending.ts lists "${id}", which CONTRACT.md does not have`);
    assert.ok(!PROVEN.has(id), `"${id}" is proven: take it off pending.ts`);
  }
  assert.equal(new Set(WAITING).size, WAITING.length);
});

test('every decision record that a line cites is linked, and exists', () => {
  for (const [, number = ''] of CONTRACT_TEXT.matchAll(/ \[(\d{4})\]/g)) {
    assert.ok(existsSync(new URL(RECORDS.get(number) ?? 'missing', ROOT)), `record ${number}`);
  }
});

test('every gap of the specification has a decision record', () => {
  const [, table = ''] = CONTRACT_TEXT.split('## Where the spec is silent');
  const rows = table.split('\n').filter((line) => /^\| *S\d+ /.test(line));
  assert.ok(rows.length >= 19, `the table has ${rows.length} rows`);
  for (const [index, row] of rows.entries()) {
    assert.match(row, new RegExp(`^\\| *S${index + 1} `), 'rows are numbered without gaps');
    const [, number = ''] = /\[(\d{4})\]/.exec(row) ?? [];
    const record = RECORDS.get(number);
    assert.ok(record !== undefined && existsSync(new URL(record, ROOT)), row);
  }
});

test('a rule in a comment, or behind a condition, proves nothing', () => {
  const found = (source: string) => [...surelyRun(source).matchAll(CALL)].length;
  assert.equal(found("rule('a 1', 'quote', fn);"), 1);
  assert.equal(found("for (const x of y) {\n  rule('a 1', 'quote', fn);\n}"), 1);
  assert.equal(found("if (x) {\n  rule('a 1', 'quote', fn);\n}"), 0);
  assert.equal(found("for (const x of y) {\n  if (x) {\n    rule('a 1', 'quote', fn);\n  }\n}"), 0);
  assert.equal(found("/*\nrule('a 1', 'quote', fn);\n*/"), 0);
  assert.equal(found("// rule('a 1', 'quote', fn);"), 0);
});

test('a contract with a malformed or a repeated line is refused', () => {
  assert.throws(() => parseContract('- **Bad Id** text'));
  assert.throws(() => parseContract('- **a 1**'));
  assert.throws(() => parseContract('- **a 1** one\n- **a 1** two'));
  assert.deepEqual([...parseContract('- **a 1** text [0001]')], [['a 1', 'text']]);
});
