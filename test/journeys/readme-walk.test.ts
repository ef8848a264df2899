// The walk-through of the README, replayed line by line against a running sandbox.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { newFolder } from '../support/app.ts';
import { startReseal } from '../support/process.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Replaces curl where it is not installed: the options that the README uses. */
const CURL = `#!${process.execPath}
const args = process.argv.slice(2);
const options = { headers: {} };
let url;
while (args.length > 0) {
  const arg = args.shift();
  if (arg === '-s') continue;
  else if (arg === '-X') options.method = args.shift();
  else if (arg === '-d') { options.body = args.shift(); options.method ??= 'POST'; }
  else if (arg === '-H') { const [name, value] = args.shift().split(': '); options.headers[name] = value; }
  else url = arg;
}
fetch(url, options).then((answer) => answer.text()).then((text) => process.stdout.write(text));
`;

/** `node bin/reseal.mjs`, as in a checkout. */
const LAUNCHER = `import ${JSON.stringify(join(ROOT, 'bin/reseal.mjs'))};`;

function toolsIn(folder: string): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const hasCurl = spawnSync('curl', ['--version']).status === 0;
  for (const [name, text] of [...(hasCurl ? [] : [['curl', CURL]]), ['reseal.mjs', LAUNCHER]] as [string, string][]) {
    writeFileSync(join(bin, name), text);
    chmodSync(join(bin, name), 0o755);
  }
  return [bin, dirname(process.execPath), process.env.PATH].join(delimiter);
}

const walk = (): string => {
  const [, block = ''] =
    /## A reissue that adds a name, offline[\s\S]*?```sh\n([\s\S]*?)```/.exec(
      readFileSync(join(ROOT, 'README.md'), 'utf8'),
    ) ?? [];
  return block;
};

test('the walk-through of the README works when it is pasted', async () => {
  const folder = newFolder();
  const data = join(folder, 'data');
  await using running = startReseal(['sandbox'], { RESEAL_DATA_DIR: data, RESEAL_PORT: '0' });
  await running.said(/Stop with Ctrl-C/);
  const lines = walk();
  assert.match(lines, /dcv-completed/);
  const shell = spawn('sh', ['-e'], {
    cwd: folder,
    env: { PATH: toolsIn(folder), HOME: folder, RESEAL_DATA_DIR: data },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  shell.stdout.on('data', (chunk) => (out += chunk));
  shell.stderr.on('data', (chunk) => (err += chunk));
  const closed = once(shell, 'close');
  shell.stdin.end(lines);
  const [code] = await closed;
  assert.equal(code, 0, err + out);
  const [reissued, waiting, ...rest] = out.split('\n');
  assert.match(reissued ?? '', /^\{"code":"success","data":\{"certificate":\{"id":"\w+"\}\}\}reissuing$/, out);
  const seen = [waiting, ...rest].join('\n');
  assert.match(seen, /auth_path: '_validation-persist\.new\.example\.com'/);
  assert.match(seen, /result: 'no_record'/);
  assert.match(seen, /result: 'ok'/);
  assert.match(seen, /\nissued\n-----BEGIN CERTIFICATE-----/);
});
