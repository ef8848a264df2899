// The formats of linters, the linters file, and linters over HTTP.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { callOut } from '../../../src/adapters/egress/call-out.ts';
import { LINT_FORMATS } from '../../../src/adapters/lint/formats.ts';
import { lintGate } from '../../../src/adapters/lint/lint-gate.ts';
import { parseLinters } from '../../../src/adapters/lint/linters-file.ts';
import { boundedFindings, MAX_FINDINGS } from '../../../src/domain/issuance/lint.ts';
import { page } from '../../support/domain-app.ts';
import { Receiver } from '../../support/receiver.ts';

const BYTES = { issuerId: 'i', signHash: 'sha256', toBeSigned: new Uint8Array([1]) } as const;
const linter = { name: 'l', format: 'pkimetal', url: 'http://127.0.0.1:1/lintcert' };

test('each format is read, with its own words for how bad a finding is', () => {
  const zlint = JSON.stringify({
    ...{
      e_a: { result: 'error', details: 'why' },
      w_b: { result: 'warn' },
      n_c: { result: 'NA' },
      e_d: { result: 'pass' },
    },
  });
  assert.deepEqual(LINT_FORMATS.zlint(zlint), [
    { severity: 'error', code: 'e_a', text: 'why' },
    { severity: 'warning', code: 'w_b', text: '' },
  ]);
  const finding_descriptions = [{ severity: 'FATAL', code: 'itu.bad', message: 'm' }];
  assert.deepEqual(LINT_FORMATS.pkilint(JSON.stringify({ results: [{ node_path: 'x', finding_descriptions }] })), [
    { severity: 'fatal', code: 'itu.bad', text: 'm' },
  ]);
  const pkimetal = [
    { Linter: 'certlint', Finding: 'Bad', Severity: 'error', Code: 'c' },
    { Linter: 'pkimetal', Finding: 'Endpoint', Severity: 'meta' },
  ];
  assert.deepEqual(LINT_FORMATS.pkimetal(JSON.stringify(pkimetal)), [{ severity: 'error', code: 'c', text: 'Bad' }]);
});

test('an answer that is not understood is refused, never taken for a pass', () => {
  const broken = ['', 'null', '[]', '{}', '{"e_a":{}}', '{"e_a":{"result":"errr"}}', '{"e_a":null}', '{"results":1}'];
  for (const output of broken) assert.throws(() => LINT_FORMATS.zlint(output), Error, output);
  for (const output of ['{}', '{"results":[{}]}', '{"results":[{"finding_descriptions":[{"severity":"BAD"}]}]}', '[]'])
    assert.throws(() => LINT_FORMATS.pkilint(output), Error, output);
  for (const output of ['{}', '[{}]', '[1]', '[{"Severity":"toString"}]'])
    assert.throws(() => LINT_FORMATS.pkimetal(output), Error, output);
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom('zlint', 'pkilint', 'pkimetal'), (value, format) => {
      try {
        const found = LINT_FORMATS[format](JSON.stringify(value));
        assert.ok(found.every(({ severity }) => ['notice', 'warning', 'error', 'fatal'].includes(severity)));
      } catch (error) {
        assert.ok(error instanceof Error);
      }
    }),
  );
});

test('findings are bounded, worst first, and cannot forge lines', () => {
  const finding = { linter: 'l', severity: 'notice', code: 'c\n\u202e', text: 'x'.repeat(10_000) } as const;
  const found = boundedFindings([...Array.from({ length: 200 }, () => finding), { ...finding, severity: 'fatal' }]);
  assert.equal(found.length, MAX_FINDINGS);
  assert.equal(found[0]?.severity, 'fatal');
  assert.ok(found.every(({ code, text }) => code === 'c ' && text.length <= 500));
});

test('the linters file is strict, and says what to write', () => {
  const wrong: readonly [unknown, RegExp][] = [
    [null, /file: write an object/],
    [{ linters: [] }, /1 to 8/],
    [{ linters: [linter], more: 1 }, /file\.more: there is no such setting/],
    [{ linters: [{ ...linter, fail_onn: 'error' }] }, /fail_onn/],
    [{ linters: [{ ...linter, name: 'A B' }] }, /name/],
    [{ linters: [linter, linter] }, /may occur once/],
    [{ linters: [{ ...linter, format: 'xlint' }] }, /choose one of zlint, pkilint, pkimetal/],
    [{ linters: [{ ...linter, command: ['zlint'] }] }, /either command or url/],
    [{ linters: [{ name: 'l', format: 'zlint' }] }, /either command or url/],
    [{ linters: [{ name: 'l', format: 'zlint', command: [] }] }, /name a program/],
    [{ linters: [{ name: 'l', format: 'zlint', command: 'zlint' }] }, /list of texts/],
    [{ linters: [{ ...linter, url: 'ftp://host/' }] }, /http or https/],
    [{ linters: [{ ...linter, allow: ['everywhere'] }] }, /no address/],
    [{ linters: [{ ...linter, limit_ms: 1e9 }] }, /limit_ms/],
    [{ linters: [{ ...linter, fail_on: 'worst' }] }, /notice, warning, error, fatal/],
    [{ linters: [{ ...linter, ignore: [1] }] }, /ignore/],
  ];
  for (const [json, why] of wrong) assert.throws(() => parseLinters(json), why);
  const [read] = parseLinters({ linters: [linter] });
  assert.deepEqual([read?.failOn, read?.limitMs], ['error', 10_000]);
});

test('a linter over HTTP is asked through the outbound function, and only where the file allows it', async () => {
  const objection = JSON.stringify([{ Linter: 'x', Finding: 'Bad', Severity: 'error', Code: 'c' }]);
  let answer = page('[]');
  await using receiver = await Receiver.start({ script: (socket) => socket.end(answer) });
  const ask = async (allow: string[], more: object = {}) => {
    const url = `http://127.0.0.1:${receiver.port}/lintcert`;
    const linters = parseLinters({ linters: [{ ...linter, url, allow, ...more }] });
    const tools = { atOnce: 2, imitate: async () => new Uint8Array([0x30, 0]) };
    const gate = lintGate(linters, { ...tools, callOut: callOut({ dnsServers: [], extraRoots: [], userAgent: 'x' }) });
    return await gate(BYTES, 'account');
  };
  const closed = await ask([]);
  assert.equal(
    closed.kind === 'failed' && closed.why,
    'l: its address is private; name it in `allow` of the linters file',
  );
  assert.equal(receiver.requests.length, 0);
  assert.equal((await ask(['127.0.0.1'])).kind, 'passed');
  assert.match(String(receiver.requests[0]), /b64input=MAA%3D/);
  answer = page(objection);
  assert.equal((await ask(['127.0.0.1'])).kind, 'refused');
  assert.equal((await ask(['127.0.0.1'], { ignore: ['c'] })).kind, 'passed', 'ignored, and kept');
  assert.equal((await ask(['127.0.0.1'], { fail_on: 'fatal' })).kind, 'passed');
  for (const broken of [page(objection, 500), page('<html>'), 'HTTP/1.1 200 OK\r\n\r\n']) {
    answer = broken;
    assert.equal((await ask(['127.0.0.1'])).kind, 'failed', broken);
  }
});
