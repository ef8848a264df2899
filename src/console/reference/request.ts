// A request as the reader fills it in, and the two forms it takes: what the page sends, and the command to paste.
import type { Operation, Parameter } from './document.ts';

export interface Draft {
  /** By the names of the parameters; empty ones are left out. */
  readonly values: Readonly<Record<string, string>>;
  /** JSON as text, sent as it is; empty for none. */
  readonly body: string;
}

export interface PreparedRequest {
  readonly method: string;
  /** With its query, below the address of the service. */
  readonly target: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | undefined;
}

export const DRY_RUN = 'dry_run';
export const hasDryRun = ({ parameters = [] }: Operation): boolean => parameters.some(({ name }) => name === DRY_RUN);
export const isDryRun = ({ values }: Draft): boolean => values[DRY_RUN] === 'true';
export const changesSomething = ({ method }: Operation): boolean => method !== 'get';

/** Those that are secrets are not shown in commands, but read from the shell. */
export const isSecret = ({ name }: Parameter): boolean => /-pin$/i.test(name);
/** X-CC-Key-ID is read from $KEY_ID: set once, and every command can be pasted as it is. */
export const variableOf = (header: string): string => header.replace('X-CC-', '').replaceAll('-', '_').toUpperCase();

/** Such as ORDER_ID, for an id that is not filled in: curl would take {id} for a list of alternatives. */
function placeholderOf({ path, parameters = [] }: Operation, name: string): string {
  if (name !== 'id') return name.toUpperCase();
  const description = parameters.find((one) => one.name === name)?.description ?? '';
  const [, thing = ''] = /id of the (\w+)/.exec(description) ?? /([\w-]+)s\/\{id\}/.exec(path) ?? [];
  return `${thing.replaceAll('-', '_').toUpperCase()}_ID`;
}

export function prepare(operation: Operation, { values, body }: Draft): PreparedRequest {
  const { path, method, parameters = [] } = operation;
  const filled = (place: Parameter['in']) =>
    parameters.flatMap((one) => {
      const value = values[one.name] ?? '';
      return one.in === place && value !== '' ? [[one.name, value] as const] : [];
    });
  const query = new URLSearchParams(filled('query').map(([name, value]) => [name, value]));
  return {
    method: method.toUpperCase(),
    target:
      path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] || placeholderOf(operation, name))) +
      (query.size > 0 ? `?${query}` : ''),
    headers: [...filled('header'), ...(body.trim() === '' ? [] : [['Content-Type', 'application/json'] as const])],
    body: body.trim() === '' ? undefined : body,
  };
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export interface CommandOptions {
  readonly server: string;
  /** Names of the headers of the key. */
  readonly keyHeaders: readonly string[];
  /** The reader's, once signed in. */
  readonly keyId: string | undefined;
}

/** The command for what the page sends, with the two headers of a key in place of the session. */
export function curlOf(operation: Operation, draft: Draft, { server, keyHeaders, keyId }: CommandOptions): string {
  const { method, target, headers, body } = prepare(operation, draft);
  const secrets = new Set((operation.parameters ?? []).filter(isSecret).map(({ name }) => name));
  const fromShell = (name: string) => `-H "${name}: $${variableOf(name)}"`;
  return [
    `curl -sS${method === 'GET' ? '' : ` -X ${method}`} ${quoted(server + target)}`,
    ...keyHeaders.map((name) => (name.endsWith('ID') && keyId ? `-H ${quoted(`${name}: ${keyId}`)}` : fromShell(name))),
    ...headers.map(([name, value]) => (secrets.has(name) ? fromShell(name) : `-H ${quoted(`${name}: ${value}`)}`)),
    ...(body === undefined ? [] : [`-d ${quoted(body)}`]),
  ].join(' \\\n  ');
}

/** What is wrong with the text as JSON, or nothing. */
export function jsonFault(text: string): string | undefined {
  if (text.trim() === '') return undefined;
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
