// What every page of the console must withstand: an examination by axe-core, a narrow window, and a look at its screenshots.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const FOLDER = new URL('../../test-output/screenshots/', import.meta.url).pathname;

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly help: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/** Evaluated from outside of the page, whose policy would not let it in. */
export async function requireAccessible(page: Page, name: string): Promise<void> {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as AxeResults;
  const found = violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' | ')}`);
  assert.deepEqual(found, [], name);
}

export async function requireNoSidewaysScroll(page: Page, name: string): Promise<void> {
  const [wide, there] = (await page.evaluate(
    '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
  )) as [number, number];
  assert.ok(wide <= there, `${name} is ${wide} px wide in a window of ${there}`);
}

/** For people to look at; the folder is ignored by Git. */
export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  await page.screenshot({ path: `${FOLDER}${name}.jpg`, type: 'jpeg', quality: 70, fullPage: true });
}
