// A small internet on loopback, by the programs of others: BIND serves a signed root, a signed `com`, and zones below it; unbound
// with the shipped settings and BIND as resolvers validate from that root. Nothing leaves the machine.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import dgram from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { dnsLookups } from '../src/adapters/dns/lookups.ts';

const SHIPPED = new URL('../deploy/unbound.conf', import.meta.url);
const READY_TRIES = 100;
const READY_PAUSE_MS = 100;
/** Longer than the negative TTL of the shipped settings, so that the cap is what is tested. */
const TTL = 3_600;

export const isInstalled = (program: string): boolean => {
  try {
    execFileSync('which', [program], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** Zones below `com`: signed, unsigned, signed by another key than its parent says, and one that its server cannot load. */
const SIGNED = 'sound.com';
const BOGUS = 'bogus.com';
const UNSIGNED = 'plain.com';
const DEAD = 'dead.com';
/** Each is asked for at the port of the one server: NS records have none. */
const ZONES = ['.', 'com', SIGNED, BOGUS, UNSIGNED, DEAD];

export class Internet implements AsyncDisposable {
  readonly #folder: string;
  readonly #children: ChildProcess[] = [];
  readonly #records = new Map<string, string>();
  #server: ChildProcess | undefined;
  #port = 0;
  #serial = 1;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async start(folder: string): Promise<Internet> {
    const internet = new Internet(folder);
    await internet.#serve();
    return internet;
  }

  /** Sets the record of a name in the signed or the unsigned zone, as `TXT "…"`, until it is served; undefined deletes it. A CNAME leads to a CAA record. */
  async set(name: string, record: string | undefined): Promise<void> {
    if (record === undefined) this.#records.delete(name);
    else this.#records.set(name, record);
    this.#serial += 1;
    this.#write(UNSIGNED);
    this.#write(SIGNED);
    this.#sign(SIGNED, SIGNED);
    this.#server?.kill('SIGHUP');
    const authority = dnsLookups([`127.0.0.1:${this.#port}`]);
    const context = { accountId: 'campaign', signal: new AbortController().signal };
    const isText = record === undefined || record.startsWith('TXT');
    for (let tries = 0; tries < READY_TRIES; tries += 1) {
      const [answer] = isText ? [await authority.txt(name, context)] : await authority.caa([name], context);
      if (answer?.kind === (record === undefined ? 'absent' : 'found')) return;
      await sleep(READY_PAUSE_MS);
    }
    throw new Error(`the change of ${name} is not served`);
  }

  /** Changes are made to the text of the shipped settings. */
  async unbound(change: (settings: string) => string = (text) => text): Promise<Resolver> {
    const port = await freePort();
    const key = join(this.#folder, 'root.key');
    writeFileSync(key, this.#keyOf('.'));
    const settings = change(readFileSync(SHIPPED, 'utf8')).replace('/usr/share/dns/root.key', key);
    const file = join(this.#folder, `unbound-${port}.conf`);
    writeFileSync(
      file,
      `${settings}
    interface: 127.0.0.1
    port: ${port}
    do-not-query-localhost: no
    do-daemonize: no
    use-syslog: no
    username: ""
    chroot: ""
    directory: "${this.#folder}"
    pidfile: ""
remote-control:
    control-enable: no
${ZONES.map((zone) => `stub-zone:\n    name: "${zone}"\n    stub-addr: 127.0.0.1@${this.#port}\n`).join('')}
`,
    );
    return await this.#run('unbound', ['-d', '-c', file], port);
  }

  /** With the settings for BIND that docs/operations.md has. */
  async bind(): Promise<Resolver> {
    const port = await freePort();
    const [, flags, protocol, algorithm, ...key] = /DNSKEY (\d+) (\d+) (\d+) (.+)/.exec(this.#keyOf('.')) ?? [];
    const file = join(this.#folder, `named-${port}.conf`);
    writeFileSync(
      file,
      `options {
  ${this.#options(port)}
  recursion yes; forward only; forwarders { 127.0.0.1 port ${this.#port}; };
  dnssec-validation yes; max-cache-ttl 30; max-ncache-ttl 5; servfail-ttl 1;
  synth-from-dnssec no; empty-zones-enable no;
};
controls { };
trust-anchors { . static-key ${flags} ${protocol} ${algorithm} "${key.join('').replaceAll(' ', '')}"; };
`,
    );
    return await this.#run('named', ['-g', '-n', '1', '-c', file], port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    }
  }

  async #serve(): Promise<void> {
    this.#port = await freePort();
    for (const zone of [SIGNED, BOGUS, UNSIGNED]) this.#write(zone);
    for (const zone of [SIGNED, BOGUS]) this.#sign(zone, zone);
    const wrong = this.#dsOf(SIGNED).replaceAll(SIGNED, BOGUS);
    const delegations = [SIGNED, BOGUS, UNSIGNED, DEAD].map((zone) => `${zone}. NS ns.${UNSIGNED}.`);
    this.#write('com', [...delegations, this.#dsOf(SIGNED), wrong].join('\n'));
    this.#sign('com', 'com');
    this.#write('.', `com. NS ns.${UNSIGNED}.\n${this.#dsOf('com')}`);
    this.#sign('.', 'root');
    const zone = (name: string, file: string) =>
      `zone "${name}" { type primary; file "${join(this.#folder, file)}"; };`;
    const file = join(this.#folder, 'authority.conf');
    writeFileSync(
      file,
      `options { ${this.#options(this.#port)} recursion no; dnssec-validation no; };
controls { };
${zone('.', 'root.zone.signed')}
${zone('com', 'com.zone.signed')}
${zone(SIGNED, `${SIGNED}.zone.signed`)}
${zone(BOGUS, `${BOGUS}.zone.signed`)}
${zone(UNSIGNED, `${UNSIGNED}.zone`)}
${zone(DEAD, 'missing.zone')}
`,
    );
    await this.#run('named', ['-g', '-n', '1', '-c', file], this.#port);
    this.#server = this.#children.at(-1);
  }

  #options(port: number): string {
    const session = join(this.#folder, `session-${port}.key`);
    return `directory "${this.#folder}"; pid-file none; session-keyfile "${session}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; allow-query { 127.0.0.1; };`;
  }

  #write(zone: string, more = ''): void {
    const own = [...this.#records].filter(([name]) => name.endsWith(`.${zone}`));
    const file = join(this.#folder, `${zone === '.' ? 'root' : zone}.zone`);
    writeFileSync(
      file,
      `$TTL ${TTL}
${zone === '.' ? '.' : `${zone}.`} SOA ns.${UNSIGNED}. who.${UNSIGNED}. ${this.#serial} 3600 600 86400 ${TTL}
${zone === '.' ? '.' : `${zone}.`} NS ns.${UNSIGNED}.
${zone === UNSIGNED ? `ns.${UNSIGNED}. A 127.0.0.1` : ''}
${own.map(([name, record]) => `${name}. ${record}`).join('\n')}
${more}
`,
    );
  }

  readonly #keys = new Map<string, string>();

  #sign(zone: string, file: string): void {
    const options = { cwd: this.#folder, encoding: 'utf8', stdio: 'pipe' } as const;
    if (!this.#keys.has(zone)) {
      const made = execFileSync('dnssec-keygen', ['-a', 'ECDSAP256SHA256', '-f', 'KSK', zone], options);
      this.#keys.set(zone, made.trim());
    }
    execFileSync('dnssec-signzone', ['-S', '-z', '-o', zone, '-f', `${file}.zone.signed`, `${file}.zone`], options);
  }

  #keyOf = (zone: string): string =>
    readFileSync(join(this.#folder, `${this.#keys.get(zone)}.key`), 'utf8')
      .replace(/^;.*\n/gm, '')
      .replace(/ IN /, ' ');

  #dsOf(zone: string): string {
    const key = join(this.#folder, `${this.#keys.get(zone)}.key`);
    return execFileSync('dnssec-dsfromkey', ['-2', key], { encoding: 'utf8' }).trim();
  }

  async #run(program: string, args: readonly string[], port: number): Promise<Resolver> {
    const child = spawn(program, args, { stdio: 'ignore' });
    this.#children.push(child);
    const address = `127.0.0.1:${port}`;
    const { isReachable } = dnsLookups([address]);
    for (let tries = 0; tries < READY_TRIES; tries += 1) {
      if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
      // Also of a server that knows no root yet.
      if (await isReachable()) return { address, signal: (one) => void child.kill(one) };
      await sleep(READY_PAUSE_MS);
    }
    throw new Error(`${program} does not answer at ${address}`);
  }
}

export interface Resolver {
  readonly address: string;
  signal(one: NodeJS.Signals): void;
}

async function freePort(): Promise<number> {
  using silent = await silentPort();
  return silent.port;
}

/** Takes questions, and never answers one. */
export async function silentPort(): Promise<{ readonly port: number } & Disposable> {
  const socket = dgram.createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { port: socket.address().port, [Symbol.dispose]: () => void socket.close() };
}
