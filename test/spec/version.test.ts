// Compares the API of this build with the one recorded in interface.json. Recorded facts stay; `npm run
// record-interface` records additions and refuses to record a removal.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { ERROR_TABLE } from '../../src/http/front/error-table.ts';
import { startApp } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { dereferenced, documentOf } from '../support/document.ts';
import { compareFacts, type Facts, factsOf } from '../support/interface.ts';

const FILE = new URL('./interface.json', import.meta.url);
const IS_RECORDING = process.env.RECORD_INTERFACE === '1';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

rule('version 2', 'no operation, request field, answer field or code is removed or given another meaning', async () => {
  const now = factsOf(dereferenced(await documentOf(app)), ERROR_TABLE);
  const recorded: Facts = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : {};
  const { broken, added } = compareFacts(recorded, now);
  assert.deepEqual(broken, [], 'within v3 the interface only grows');
  if (IS_RECORDING) {
    const all = { ...recorded, ...now };
    const sorted = Object.fromEntries(Object.entries(all).sort(([one], [other]) => (one < other ? -1 : 1)));
    writeFileSync(FILE, `${JSON.stringify(sorted, null, 2)}\n`);
    return;
  }
  assert.deepEqual(added, [], 'record additions with: npm run record-interface');
  assert.ok(Object.keys(recorded).length > 200, 'the record is not empty');
});

test('a removed field, a changed type and a new required field are detected', () => {
  const was = {
    'POST /x': 'operation',
    'POST /x > a': 'string required',
    'POST /x > b': 'string optional',
    'POST /x < c': 'string',
    'code no': '404',
  };
  const brokenBy = (change: Record<string, string | undefined>) => {
    const now = Object.entries({ ...was, ...change }).filter(([, fact]) => fact !== undefined);
    return compareFacts(was, Object.fromEntries(now) as Facts).broken.length;
  };
  for (const gone of Object.keys(was)) assert.equal(brokenBy({ [gone]: undefined }), 1, gone);
  assert.equal(brokenBy({ 'POST /x > b': 'string required' }), 1);
  assert.equal(brokenBy({ 'POST /x > b': 'integer optional' }), 1);
  assert.equal(brokenBy({ 'POST /x < c': 'integer' }), 1);
  assert.equal(brokenBy({ 'code no': '410' }), 1);
  assert.equal(brokenBy({ 'POST /x > d': 'string required' }), 1);
  assert.equal(brokenBy({ 'POST /x > d': 'string optional', 'POST /x < e': 'string', 'code new': '400' }), 0);
  assert.equal(brokenBy({ 'POST /x > a': 'string optional' }), 0);
  assert.equal(brokenBy({ 'POST /y': 'operation', 'POST /y > a': 'string required' }), 0);
});
