// Test files that share a process, one after the other: importing the service takes most of a second of CPU per process.
// Files about the program as a process run by themselves (test/journeys). Each file still runs alone: node --test FILE.
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

/** Runs the test files in a folder and below. Tests and hooks of a file belong to one test, which has the file's name. */
export function runTestsIn(folder: string): void {
  for (const file of globSync('**/*.test.ts', { cwd: folder }).sort()) {
    test(file, async (context) => {
      const loaded = import(pathToFileURL(join(folder, file)).href);
      // Node waits for subtests until none is left, so the first one lasts until all of them are registered.
      context.test('loads', () => loaded);
      await loaded;
    });
  }
}
