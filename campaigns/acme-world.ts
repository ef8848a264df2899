// The sandbox that campaigns let ACME clients order from, and what its order interface shows of it: an order over ACME is an
// order.
import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { SandboxFile } from '../src/sandbox/folder.ts';

export interface World {
  readonly folder: string;
  readonly file: SandboxFile;
  /** Where clients listen. */
  readonly http: number;
  readonly tls: number;
  /** PEM file that verifies the sandbox. */
  readonly roots: string;
}

export interface Seen {
  readonly output: string;
  readonly orders: readonly ShownOrder[];
}

export interface ShownOrder {
  readonly id: string;
  readonly status: string;
  readonly common_name: string | null;
  readonly certificate_id: string | null;
  readonly replaces: string | null;
  readonly replaced_by: string | null;
}

/** As the order interface shows them: an order over ACME is an order. */
export function ordersOf(world: World): readonly ShownOrder[] {
  const read = (path: string) => call(world, `/orders${path}`);
  const listed: readonly ShownOrder[] = read('?limit=100').orders;
  return listed
    .filter(({ common_name }) => CLIENT_NAME.test(common_name ?? ''))
    .map((one) => ({ ...one, ...read(`/${one.id}`) }));
}

// biome-ignore lint/suspicious/noExplicitAny: answers differ in shape; each caller knows which it expects.
export function call({ file, roots }: World, path: string, ...more: readonly string[]): any {
  const [account] = file.accounts;
  const key = account?.credentials.find(({ kind }) => kind === 'standard');
  const headers = ['-H', `X-CC-Key-ID: ${key?.key_id}`, '-H', `X-CC-Auth-Key: ${key?.auth_key}`];
  const args = ['-s', '--cacert', roots, ...headers, ...more, `${file.base_url}/openapi/v3${path}`];
  const { stdout } = spawnSync('curl', args, { encoding: 'utf8' });
  const { code, data } = JSON.parse(stdout);
  if (code !== 'success') throw new Error(stdout);
  return data;
}

/** The holder of the account revokes the certificates of a name, in the interface. */
export function revokeAll(world: World, name: string): void {
  for (const { certificate_id } of ordersOf(world).filter((one) => one.common_name === name && one.status === 'issued'))
    call(world, `/certs/${certificate_id}/revoke`, '-H', 'Content-Type: application/json', '-d', '{}');
}
export const CLIENT_NAME = /(certbot|lego|caddy)-|^127/;

/** How many issued orders of the name there must be, and that the last one replaces an earlier one. */
export const issued =
  (name: string, replaces = false) =>
  ({ orders }: Seen): string | undefined => {
    const found = orders.filter((order) => order.common_name === name && order.status === 'issued');
    if (found.length === 0) return `there is no issued order for ${name}: ${JSON.stringify(orders)}`;
    if (
      replaces &&
      !found.some((one) => orders.some(({ id, replaced_by }) => id === one.replaces && replaced_by === one.id))
    )
      return `no order for ${name} replaces another: ${JSON.stringify(found)}`;
    return undefined;
  };
export const revoked =
  (name: string) =>
  ({ orders }: Seen): string | undefined =>
    orders.some((order) => order.common_name === name && order.status === 'revoked')
      ? undefined
      : `no order for ${name} is revoked: ${JSON.stringify(orders)}`;
export const certificateFor = (path: string, names: readonly string[]): string | undefined => {
  const { subjectAltName = '' } = new X509Certificate(readFileSync(path));
  const wanted = names.map((name) => `DNS:${name}`).join(', ');
  return subjectAltName === wanted ? undefined : `${path} is for ${subjectAltName}, not ${wanted}`;
};

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
