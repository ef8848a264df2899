// The help of every command: by noun, within 80 columns, as JSON; and hints that can be typed as they are.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMMANDS } from '../../src/cli/commands.ts';
import { hintsFor, programOf } from '../../src/cli/hints.ts';
import { reseal } from '../support/in-process.ts';

const NAMES = Object.keys(COMMANDS);
const helpOf = async (...words: string[]): Promise<string> => {
  const { code, out, err } = await reseal([...words, '--help']);
  assert.deepEqual([code, err], [0, '']);
  return out;
};
const longest = (text: string): number => Math.max(...text.split('\n').map((line) => [...line].length));

test('all help is within 80 columns, and every command shows its options and examples', async () => {
  assert.ok(longest(await helpOf()) <= 80);
  for (const name of NAMES) {
    const { positionals, options, about } = COMMANDS[name]!;
    const words = [...name.split(' '), ...positionals];
    const out = await helpOf(...words);
    assert.ok(longest(out) <= 80, out);
    assert.ok(out.startsWith(`reseal ${words.join(' ')}\n`), out);
    assert.ok(out.replace(/\s+/g, ' ').includes(about), out);
    for (const option of Object.keys(options)) assert.match(out, new RegExp(`^  --${option}\\b`, 'm'));
    assert.match(out, /\nExamples\n {2}reseal /);
  }
});

test('help for a noun shows its commands only', async () => {
  const all = await helpOf();
  for (const noun of new Set(NAMES.map((name) => name.split(' ')[0]!))) {
    const out = await helpOf(noun);
    for (const name of NAMES) {
      const isListed = new RegExp(`^(  |reseal )${name}( {2,}|$| [A-Z[])`, 'm').test(out);
      assert.equal(isListed, name.split(' ')[0] === noun, `${name} in the help of ${noun}`);
      assert.match(all, new RegExp(`^  ${name}( |$)`, 'm'));
    }
  }
  assert.match(await helpOf('sandbox', 'dns'), /sandbox dns clear/);
  assert.doesNotMatch(await helpOf('sandbox', 'dns'), /sandbox http/);
});

test('--help --json is JSON with every command', async () => {
  const { commands, exit_codes } = JSON.parse(await helpOf('--json'));
  assert.deepEqual(
    commands.map(({ name }: { name: string }) => name),
    NAMES,
  );
  assert.equal(exit_codes.bug, 70);
  for (const name of NAMES) {
    const [command, ...others] = JSON.parse(await helpOf(...name.split(' '), '--json')).commands;
    for (const other of others) assert.ok(other.name.startsWith(`${name} `), other.name);
    assert.deepEqual([command.name, command.arguments], [name, COMMANDS[name]!.positionals]);
    for (const option of ['json', 'env-file', ...Object.keys(COMMANDS[name]!.options)]) {
      assert.equal(typeof command.options[option].about, 'string', `${name} --${option}`);
    }
  }
});

test('a noun without a verb, and an unknown word, are errors that lead to help', async () => {
  const noun = await reseal(['order']);
  assert.deepEqual([noun.code, /See: reseal order --help/.test(noun.err)], [2, true]);
  const unknown = await reseal(['ordr', '--help']);
  assert.deepEqual([unknown.code, /See all of them: reseal --help/.test(unknown.err)], [2, true]);
});

test('hints name the program as it was started, and never as npx', () => {
  const path = ['/usr/bin', '/opt/reseal/bin', '/src/reseal/node_modules/.bin'].join(':');
  const table: [script: string, program: string][] = [
    ['/opt/reseal/bin/reseal', 'reseal'],
    ['/elsewhere/bin/reseal', '/elsewhere/bin/reseal'],
    ['/src/reseal/bin/reseal.mjs', 'node bin/reseal.mjs'],
    ['bin/reseal.mjs', 'node bin/reseal.mjs'],
    ['/other/bin/reseal.mjs', 'node /other/bin/reseal.mjs'],
    ['/src/reseal/node_modules/.bin/reseal', 'node node_modules/.bin/reseal'],
  ];
  for (const [script, program] of table) {
    assert.equal(programOf({ script, path, folder: '/src/reseal' }), program);
  }
  const hints = hintsFor('node bin/reseal.mjs');
  assert.equal(
    hints('See: reseal order show, then reseal doctor. The reseal service stays; so does reseal.db'),
    'See: node bin/reseal.mjs order show, then node bin/reseal.mjs doctor. The reseal service stays; so does reseal.db',
  );
});
