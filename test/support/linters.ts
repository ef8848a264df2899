// Linters files for tests.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './app.ts';

export const TEST_LINTER = {
  name: 'test-linter',
  format: 'zlint',
  command: [process.execPath, new URL('./linter.mjs', import.meta.url).pathname],
};

export function lintersFile(...linters: readonly object[]): string {
  const file = join(newFolder(), 'linters.json');
  writeFileSync(file, JSON.stringify({ linters: linters.length > 0 ? linters : [TEST_LINTER] }));
  return file;
}
