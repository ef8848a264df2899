// Parses CONTRACT.md, and `rule`: a test that names and quotes a line of it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';

/** Link targets of decision records, by number. */
export const recordsIn = (text: string): ReadonlyMap<string, string> =>
  new Map([...text.matchAll(/^\[(\d{4})\]: (\S+)$/gm)].map(([, number = '', path = '']) => [number, path]));

const LINE = /^- \*\*([a-z0-9_.-]+(?: [a-z0-9_.-]+)*)\*\* (.+)$/;

export const CONTRACT_TEXT = readFileSync(new URL('../../CONTRACT.md', import.meta.url), 'utf8');

/** Every line of the contract by its id, without the decision records it cites. */
export const CONTRACT: ReadonlyMap<string, string> = parseContract(CONTRACT_TEXT);

export function parseContract(text: string): Map<string, string> {
  const lines = new Map<string, string>();
  for (const line of text.split('\n').filter((one) => one.startsWith('- **'))) {
    const [, id, claim] = LINE.exec(line) ?? [];
    if (id === undefined || claim === undefined) throw new Error(`not a contract line: ${line}`);
    if (lines.has(id)) throw new Error(`the contract has two lines "${id}"`);
    lines.set(id, claim.replace(/(?: \[\d{4}\])+$/, ''));
  }
  return lines;
}

/** Proves one line of the contract. The quote must be part of that line, so that line and test cannot diverge. */
export function rule(
  id: string,
  quote: string,
  prove: (context: TestContext) => void | Promise<void>,
  options: { readonly skip?: string | false } = {},
): void {
  test(`${id}: ${quote}`, options, async (context) => {
    const line = CONTRACT.get(id);
    assert.ok(line !== undefined, `CONTRACT.md has no line "${id}"`);
    assert.ok(line.includes(quote), `line "${id}" says something else: ${line}`);
    await prove(context);
  });
}
