// One sandbox and one browser for journeys through the console: signing in as a person does, calls as a script makes them
// beside the page, and what is asked of every page.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { readConfig } from '../../src/config/config.ts';
import type { SandboxFile } from '../../src/sandbox/folder.ts';
import { serveSandbox } from '../../src/wiring/sandbox.ts';
import { newFolder } from './app.ts';
import { launchBrowser, openPage } from './browser.ts';
import { reseal } from './in-process.ts';

const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
/** Ignored by git: for people to look at. */
const SHOTS = new URL('../../test-output/screenshots/', import.meta.url);

/** Failing statuses are part of journeys; Chromium notes each of them as an error of the console. */
const EXPECTED = /^console: Failed to load resource: the server responded with a status of 4\d\d/;

export class ConsoleJourney implements AsyncDisposable {
  readonly #folder: string;
  readonly #stop: () => Promise<void>;
  readonly browser: Browser;
  readonly sandbox: SandboxFile;
  readonly #faults: string[][] = [];
  #storage: Awaited<ReturnType<ReturnType<Page['context']>['storageState']>> | undefined;
  #ahead = 0;

  private constructor(parts: { folder: string; browser: Browser; sandbox: SandboxFile; stop: () => Promise<void> }) {
    this.#folder = parts.folder;
    this.browser = parts.browser;
    this.sandbox = parts.sandbox;
    this.#stop = parts.stop;
  }

  static async start(): Promise<ConsoleJourney> {
    const folder = newFolder();
    const { config } = readConfig({
      ...{ RESEAL_DATA_DIR: folder, RESEAL_PORT: '0', RESEAL_CALLBACK_SCHEDULE: '10ms' },
      RESEAL_PRODUCTS_FILE: productsFile(),
    });
    let journey: ConsoleJourney | undefined;
    const now = () => Date.now() + (journey ? journey.#ahead : 0);
    const browser = launchBrowser();
    const { sandbox, stop } = await serveSandbox({ ...config, workers: 0 }, { now, log: () => {} });
    journey = new ConsoleJourney({ folder, browser: await browser, sandbox, stop });
    mkdirSync(SHOTS, { recursive: true });
    return journey;
  }

  get key() {
    const [account] = this.sandbox.accounts;
    const found = account?.credentials.find(({ kind }) => kind === 'standard');
    assert.ok(found);
    return found;
  }

  orderOf(product: string): string {
    return this.sandbox.orders.find((one) => one.product === product)?.id ?? assert.fail(product);
  }

  /** The clock of the service, not that of the browser. */
  advance(ms: number): void {
    this.#ahead += ms;
  }

  /** As a script of the account calls. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape, and assert what they find.
  async api(method: string, path: string, body?: unknown): Promise<any> {
    const response = await fetch(`${this.sandbox.base_url}/openapi/v3/${path}`, {
      method,
      headers: {
        ...{ 'X-CC-Key-ID': this.key.key_id, 'X-CC-Auth-Key': this.key.auth_key },
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    const answer: any = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer.data;
  }

  async publish(host: string, value: string): Promise<void> {
    const { code, err } = await reseal(['sandbox', 'dns', 'set', host, 'TXT', value], {
      ...{ RESEAL_DATA_DIR: this.#folder, RESEAL_PORT: '0' },
    });
    assert.equal(code, 0, err);
  }

  /** A page that is not signed in. */
  async stranger(options: Parameters<typeof openPage>[2] = {}): Promise<Page> {
    const { page, faults } = await openPage(this.browser, this.sandbox.base_url, {
      viewport: { width: 1280, height: 900 },
      ...options,
    });
    this.#faults.push(faults as string[]);
    page.setDefaultTimeout(20_000);
    return page;
  }

  /** Signs in with the keyboard alone. The session is shared by the pages of `signedIn`. */
  async signIn(page: Page): Promise<void> {
    await page.goto(`${this.sandbox.base_url}/console/`);
    await page.locator('[name=key_id]').focus();
    await page.keyboard.type(this.key.key_id);
    await page.keyboard.press('Tab');
    await page.keyboard.type(this.key.auth_key);
    await page.keyboard.press('Enter');
    await page.getByRole('navigation', { name: /Pages|页面/ }).waitFor();
    this.#storage = await page.context().storageState();
  }

  async signedIn(options: Parameters<typeof openPage>[2] = {}): Promise<Page> {
    assert.ok(this.#storage);
    return await this.stranger({ storageState: this.#storage, ...options });
  }

  /** Opens a page of the console, and waits until it has read what it shows. */
  async visit(page: Page, path: string): Promise<void> {
    await page.goto(`${this.sandbox.base_url}/console/#/${path}`);
    await settled(page);
  }

  async shot(page: Page, name: string): Promise<void> {
    await page.screenshot({ path: new URL(`${name}.jpg`, SHOTS).pathname, type: 'jpeg', quality: 70, fullPage: true });
  }

  /** No page had an error, a violation of the policy, or a request to another place. */
  assertSound(): void {
    assert.deepEqual(
      this.#faults.flat().filter((fault) => !EXPECTED.test(fault)),
      [],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
    await this.#stop();
  }
}

/** With a product that schedules revocations, and lets them be put off. */
function productsFile(): string {
  const file = join(newFolder(), 'products.json');
  const product = {
    ...{
      id: 'tls-grace',
      name: { en: 'TLS with a period of grace', zh: '带宽限期的 TLS' },
      kind: 'ssl',
      trust: 'private',
    },
    ...{ names_may_change: 'any', csr: 'optional', key_sources: ['caller'], keys: [{ type: 'p256' }] },
    ...{ revokes_previous_on_reissue: true, revocation_grace_hours: 72, revocation_may_be_put_off: true },
    ...{ sign_hashes: ['sha256'], allows_wildcard: true, dcv_methods: ['dns'], dcv_scopes: ['fqdn'] },
    ...{ max_validity_days: 90, term_days: 365, reuse_days: 90 },
  };
  writeFileSync(file, JSON.stringify({ products: [product] }));
  return file;
}

/** The page is there, and nothing in it is being read any more. */
export const settled = (page: Page): Promise<unknown> =>
  page.waitForFunction(() => {
    const { document } = globalThis as unknown as { document: { querySelector(selector: string): unknown } };
    return document.querySelector('h1') !== null && document.querySelector('.loading') === null;
  });

/** What axe-core finds wrong, as sentences; of some rules only, if they are named. */
export async function violations(page: Page, rules?: readonly string[]): Promise<string[]> {
  const run = async (only: readonly string[] | undefined) => {
    // biome-ignore lint/suspicious/noExplicitAny: axe-core puts itself into the page.
    const { violations: found } = await (globalThis as any).axe.run({
      resultTypes: ['violations'],
      ...(only && { runOnly: only }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    return found.map(({ id, nodes }: any) => `${id}: ${nodes.map((one: any) => one.html).join(' | ')}`);
  };
  // A script tag would break the policy of the page; the tools of the browser may run anything.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  return await page.evaluate(run, rules);
}

/** How far the page can be scrolled sideways. */
export const overhang = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const { document, innerWidth } = globalThis as unknown as {
      document: { documentElement: { scrollWidth: number } };
      innerWidth: number;
    };
    return document.documentElement.scrollWidth - innerWidth;
  });

/** Every page of account holders: its address, for what the journey has made. */
export const PAGES: Readonly<Record<string, (facts: PageFacts) => string>> = {
  orders: () => 'orders',
  'order-new': () => 'orders/new',
  order: ({ order }) => `orders/${order}`,
  reissue: ({ order }) => `orders/${order}/reissue`,
  certificates: () => 'certificates',
  certificate: ({ revoked }) => `certificates/${revoked}`,
  callbacks: () => 'callbacks',
  deliveries: () => 'callbacks/deliveries',
  delivery: ({ delivery }) => `callbacks/deliveries/${delivery}`,
  revocations: () => 'revocations',
  'cloud-keys': () => 'cloud-keys',
  account: () => 'account',
};
export interface PageFacts {
  readonly order: string;
  readonly revoked: string;
  readonly delivery: string;
}
