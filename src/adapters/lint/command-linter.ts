// Runs a linter as a command: bounded in time and output, and ended with everything it started.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Stands in an argument for the name of a file with the certificate; without it the certificate is written to stdin. */
export const FILE = '{file}';
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_SHOWN = 200;

/** Resolves to what the command printed. Rejects with a reason for the operator. */
export async function runLinter(command: readonly string[], pem: string, limitMs: number): Promise<string> {
  const wantsFile = command.some((argument) => argument.includes(FILE));
  const folder = wantsFile ? mkdtempSync(join(tmpdir(), 'reseal-lint-')) : undefined;
  try {
    const file = folder && join(folder, 'certificate.pem');
    if (file) writeFileSync(file, pem, { mode: 0o600 });
    const [name = '', ...options] = command.map((argument) => argument.replaceAll(FILE, file ?? ''));
    return await run(name, options, { input: wantsFile ? '' : pem, limitMs });
  } finally {
    if (folder) rmSync(folder, { recursive: true, force: true });
  }
}

async function run(
  name: string,
  options: readonly string[],
  { input, limitMs }: { readonly input: string; readonly limitMs: number },
): Promise<string> {
  // A group of its own, so that children of a script end with it. No secret of this process is in its environment.
  const child = spawn(name, options, {
    ...{
      stdio: 'pipe',
      detached: process.platform !== 'win32',
      env: { PATH: process.env.PATH, HOME: tmpdir(), LANG: 'C.UTF-8' },
    },
  });
  let failure: string | undefined;
  const end = (why: string) => {
    failure ??= why;
    try {
      if (child.pid !== undefined && process.platform !== 'win32') process.kill(-child.pid, 'SIGKILL');
      else child.kill('SIGKILL');
    } catch {
      // It has ended already.
    }
  };
  const timer = setTimeout(() => end(`it did not end within ${limitMs} ms`), limitMs);
  const output: Buffer[] = [];
  let bytes = 0;
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_OUTPUT_BYTES) end(`it printed more than ${MAX_OUTPUT_BYTES} bytes`);
    else output.push(chunk);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(0, MAX_SHOWN);
  });
  // It may end without reading.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  try {
    const [, signal] = await once(child, 'close').catch((error: Error) => {
      throw new Error(`it cannot be started: ${error.message}`);
    });
    if (failure !== undefined) throw new Error(failure);
    if (signal) throw new Error(`it was ended by ${signal}`);
  } finally {
    clearTimeout(timer);
    // What it started may have outlived it.
    end('');
  }
  // Some linters exit with the number of their findings: whether the output can be read decides.
  const text = Buffer.concat(output).toString('utf8');
  if (text.trim() === '') throw new Error(`it printed nothing${errors && `: ${errors.trim()}`}`);
  return text;
}
