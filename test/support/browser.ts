// A real browser for tests of the console: Chromium from npm, which unpacks into the temporary folder at its first start.
import { type Browser, chromium, type Page } from 'playwright-core';

/** Left out where the package has no binary: it is for Linux on x64. */
export const hasBrowser = process.platform === 'linux' && process.arch === 'x64';

export async function launchBrowser(): Promise<Browser> {
  // Makes the package unpack its own NSS libraries, which many machines do not have. Read when it is imported.
  process.env.AWS_EXECUTION_ENV ??= 'AWS_Lambda_nodejs22.x';
  const { default: packaged } = await import('@sparticuz/chromium');
  return await chromium.launch({
    executablePath: await packaged.executablePath(),
    args: [
      ...packaged.args.filter(
        (flag) => !/^--(disable-web-security|allow-running-insecure-content|single-process|no-zygote)/.test(flag),
      ),
      '--no-proxy-server',
    ],
    env: { ...process.env } as Record<string, string>,
  });
}

export interface Watched {
  readonly page: Page;
  /** Errors of the console, violations of the policy, and requests to other places. Empty in a sound page. */
  readonly faults: readonly string[];
}

/** A page in a context of its own, in which every fault is recorded. */
export async function openPage(
  browser: Browser,
  origin: string,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<Watched> {
  const context = await browser.newContext({ locale: 'en-GB', ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`page: ${error.message}`));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !/^(data|blob):/.test(url)) faults.push(`request: ${url}`);
  });
  return { page, faults };
}
