// Runs certbot, lego and Caddy against a sandbox over HTTPS: register with a binding, issue by each challenge they know,
// wildcards, renewal with `replaces`, revocation by account and by key; with the faults of a sandbox on. Each is used where it
// is installed; $CERTBOT, $LEGO and $CADDY name them. None of them changes its key: acme-client does, in npm test.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { SandboxFile } from '../src/sandbox/folder.ts';
import { startReseal } from '../test/support/process.ts';
import { OWN_PRODUCT, productsFile } from '../test/support/products.ts';
import { selfSigned } from '../test/support/self-signed.ts';
import { runCaddy } from './acme-caddy.ts';
import { certificateFor, freePort, issued, ordersOf, revokeAll, revoked, type Seen, type World } from './acme-world.ts';
import type { Campaign, Print } from './campaign.ts';

const CERTBOT = process.env.CERTBOT ?? 'certbot';
const LEGO = process.env.LEGO ?? 'lego';
const CADDY = process.env.CADDY ?? 'caddy';
const STEP_MS = 180_000;
/** What a sandbox may do to clients: each must get through. Few nonces, because certbot repeats a request once only. */
const FAULTS = { RESEAL_SANDBOX_BAD_NONCES: '2', RESEAL_SANDBOX_SHUFFLE: 'true', RESEAL_SANDBOX_NO_REUSE: 'true' };

/** Certifies IP addresses. */
const INSIDE = {
  ...{ ...OWN_PRODUCT, id: 'inside', csr: 'required', dcv_methods: ['file', 'dns'] },
  ...{ private_names: ['internal', 'ip'], validation_networks: ['127.0.0.0/8'] },
};

export const acmeClients: Campaign = {
  about:
    'orders with certbot, lego and Caddy from a sandbox that makes trouble; $CERTBOT, $LEGO and $CADDY name them (N rounds)',
  defaultN: 1,
  async run(n, print) {
    const clients = CLIENTS.flatMap((client) => {
      const version = versionOf(client);
      print(version ?? `${client.program} is not installed, and not tried`);
      return version === undefined ? [] : [client];
    });
    const caddy = versionOf({ program: CADDY }, 'version');
    print(caddy === undefined ? `${CADDY} is not installed, and not tried` : `caddy ${caddy}`);
    if (clients.length === 0 && caddy === undefined) return ['no client is installed, so nothing was proven'];
    const broken: string[] = [];
    for (let round = 1; round <= n; round += 1) {
      using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-acme-clients-'));
      const http = await freePort();
      const [port, tls] = [await freePort(), await freePort()];
      const identity = selfSigned('localhost');
      await using sandbox = startReseal(['sandbox'], {
        ...{ RESEAL_DATA_DIR: join(folder.path, 'data'), RESEAL_PORT: String(port), ...FAULTS },
        ...{ RESEAL_PUBLIC_URL: `https://localhost:${port}`, RESEAL_TLS_CERT_FILE: identity.certFile },
        ...{ RESEAL_TLS_KEY_FILE: identity.keyFile, NODE_EXTRA_CA_CERTS: identity.certFile },
        ...{
          RESEAL_DCV_HTTP_PORT: String(http),
          RESEAL_DCV_TLS_PORT: String(tls),
          RESEAL_PRODUCTS_FILE: productsFile(INSIDE),
        },
      });
      await sandbox.said(/Stop with Ctrl-C/);
      const file: SandboxFile = JSON.parse(readFileSync(join(folder.path, 'data', 'sandbox.json'), 'utf8'));
      const world: World = { folder: folder.path, file, http, tls, roots: identity.certFile };
      for (const client of clients) broken.push(...(await runClient(client, world, print)));
      if (caddy !== undefined) broken.push(...(await runCaddy(CADDY, world, print)));
    }
    return broken;
  },
};

interface Step {
  readonly what: string;
  readonly args: readonly string[];
  /** Of what the client prints, or of the certificates in the folder; undefined if all is well. */
  readonly fault?: (seen: Seen) => string | undefined;
  readonly fails?: boolean;
  /** What others do before. */
  readonly before?: () => void;
}

interface Client {
  readonly program: string;
  readonly environment: (world: World) => Readonly<Record<string, string>>;
  readonly steps: (world: World) => readonly Step[];
}

function versionOf({ program }: Pick<Client, 'program'>, option = '--version'): string | undefined {
  const { status, stdout } = spawnSync(program, [option], { encoding: 'utf8', timeout: STEP_MS });
  return status === 0 ? stdout.trim() : undefined;
}

async function runClient(client: Client, world: World, print: Print): Promise<string[]> {
  const broken: string[] = [];
  for (const { what, args, fault, fails = false, before } of client.steps(world)) {
    before?.();
    const begun = performance.now();
    const child = spawn(client.program, args, {
      ...{ cwd: world.folder, env: { ...process.env, ...client.environment(world) }, timeout: STEP_MS },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
    const output = out + err;
    const wrong =
      (code === 0) === fails
        ? `it ended with ${code}: ${output.slice(-1_500)}`
        : fault?.({ output, orders: ordersOf(world) });
    print(`${client.program} ${what}: ${wrong ? 'FAILED' : 'ok'} (${Math.round(performance.now() - begun)} ms)`);
    if (wrong) broken.push(`${client.program} ${what}: ${wrong}`);
  }
  return broken;
}

/** A shell script that publishes TXT records in the sandbox. */
function hook({ folder, file }: World, name: string, host: string, value: string): string {
  const path = join(folder, name);
  const send = (body: string, operation: string) => `curl -sf -d "${body}" ${file.challenges?.url}/${operation}`;
  const at = `\\"host\\":\\"${host}\\"`;
  const set = send(`{${at},\\"value\\":\\"${value}\\"}`, 'set-txt');
  writeFileSync(path, `#!/bin/sh\ncase "$1" in cleanup) ${send(`{${at}}`, 'clear-txt')} ;; *) ${set} ;; esac\n`);
  chmodSync(path, 0o700);
  return path;
}

const certbot: Client = {
  program: CERTBOT,
  environment: ({ roots }) => ({ REQUESTS_CA_BUNDLE: roots }),
  steps(world) {
    const { folder, file, http } = world;
    const home = join(folder, 'certbot');
    mkdirSync(home);
    const here = ['--config-dir', home, '--work-dir', home, '--logs-dir', home, '-n', '--server', file.acme!.directory];
    const eab = ['--eab-kid', file.acme!.kid, '--eab-hmac-key', file.acme!.hmac_key];
    const script = hook(world, 'certbot-hook', '_acme-challenge.$CERTBOT_DOMAIN', '$CERTBOT_VALIDATION');
    const dns = ['--manual', '--preferred-challenges', 'dns', '--manual-auth-hook', script];
    const clean = ['--manual-cleanup-hook', `${script} cleanup`];
    const order = ['certonly', ...here, '--agree-tos', '--register-unsafely-without-email'];
    const live = (name: string, part: string) => join(home, 'live', name, `${part}.pem`);
    const byName = (name: string) => ['--cert-name', name];
    return [
      {
        what: 'without a binding',
        args: ['register', ...here, '--agree-tos', '--register-unsafely-without-email'],
        fails: true,
      },
      {
        what: 'registers with a binding',
        args: ['register', ...here, ...eab, '--agree-tos', '-m', 'admin@example.com'],
      },
      { what: 'shows its account', args: ['show_account', ...here] },
      {
        what: 'http-01',
        args: [...order, '--standalone', '--http-01-port', String(http), '-d', 'certbot-http.example.com'],
        fault: issued('certbot-http.example.com'),
      },
      {
        what: 'dns-01, ten names',
        args: [...order, ...dns, ...clean, ...tenNames('certbot-many.example.com').flatMap((name) => ['-d', name])],
        fault: issued('certbot-many.example.com'),
      },
      {
        what: 'a wildcard',
        args: [...order, ...dns, ...clean, '-d', '*.certbot-wild.example.com', '-d', 'certbot-wild.example.com'],
        fault: () =>
          certificateFor(live('certbot-wild.example.com', 'cert'), [
            '*.certbot-wild.example.com',
            'certbot-wild.example.com',
          ]),
      },
      {
        what: 'profile tls-private',
        args: [...order, ...dns, ...clean, '-d', 'certbot-private.example.com', '--required-profile', 'tls-private'],
        fault: issued('certbot-private.example.com'),
      },
      {
        what: 'renews',
        args: [
          'renew',
          ...here,
          '--force-renewal',
          '--no-random-sleep-on-renew',
          ...byName('certbot-http.example.com'),
        ],
        fault: issued('certbot-http.example.com'),
      },
      {
        what: 'revokes by account',
        args: [
          'revoke',
          ...here,
          '--cert-path',
          live('certbot-http.example.com', 'cert'),
          '--reason',
          'superseded',
          '--no-delete-after-revoke',
        ],
        fault: revoked('certbot-http.example.com'),
      },
      {
        what: 'revokes by key',
        args: [
          ...['revoke', ...here, '--cert-path', live('certbot-many.example.com', 'cert'), '--no-delete-after-revoke'],
          ...['--key-path', live('certbot-many.example.com', 'privkey'), '--reason', 'keycompromise'],
        ],
        fault: revoked('certbot-many.example.com'),
      },
      { what: 'updates its account', args: ['update_account', ...here, '-m', 'other@example.com'] },
      { what: 'deactivates its account', args: ['unregister', ...here] },
    ];
  },
};

const tenNames = (first: string): string[] => [first, ...Array.from({ length: 9 }, (_, index) => `n${index}.${first}`)];

const lego: Client = {
  program: LEGO,
  environment: ({ roots, ...world }) => ({
    LEGO_CA_CERTIFICATES: roots,
    EXEC_PATH: hook({ roots, ...world }, 'lego-hook', '$2', '$3'),
    ...{ EXEC_SEQUENCE_INTERVAL: '1', EXEC_POLLING_INTERVAL: '1' },
  }),
  steps(world) {
    const { folder, file, http, tls } = world;
    const home = join(folder, 'lego');
    const { directory, kid, hmac_key } = file.acme!;
    const here = ['--server', directory, '--path', home, '--email', 'admin@example.com', '--accept-tos'];
    const bound = [...here, '--eab', '--kid', kid, '--hmac', hmac_key];
    const dns = ['--dns', 'exec', '--dns.propagation-wait', '1ms', '--dns.resolvers', file.dns.address];
    const byHttp = ['--http', '--http.port', `127.0.0.1:${http}`];
    const byTls = ['--tls', '--tls.port', `127.0.0.1:${tls}`];
    const names = (...all: readonly string[]) => all.flatMap((name) => ['-d', name]);
    return [
      { what: 'without a binding', args: [...here, ...byHttp, ...names('lego-http.example.com'), 'run'], fails: true },
      {
        what: 'registers with a binding, http-01',
        args: [...bound, ...byHttp, ...names('lego-http.example.com'), 'run'],
        fault: issued('lego-http.example.com'),
      },
      {
        what: 'tls-alpn-01, P-384, profile tls-private',
        args: [...bound, '-k', 'ec384', ...byTls, ...names('lego-tls.example.com'), 'run', '--profile', 'tls-private'],
        fault: issued('lego-tls.example.com'),
      },
      {
        what: 'dns-01, a wildcard',
        args: [...bound, ...dns, ...names('*.lego-wild.example.com', 'lego-wild.example.com'), 'run'],
        fault: () =>
          certificateFor(join(home, 'certificates', '_.lego-wild.example.com.crt'), [
            '*.lego-wild.example.com',
            'lego-wild.example.com',
          ]),
      },
      {
        what: 'asks for renewal information',
        args: [...bound, ...byHttp, ...names('lego-http.example.com'), 'renew', '--no-random-sleep'],
        fault: ({ output }) =>
          /renewalInfo endpoint indicates that renewal is not needed/.test(output) ? undefined : output,
      },
      {
        what: 'renews with replaces',
        args: [...bound, ...byHttp, ...names('lego-http.example.com'), 'renew', '--no-random-sleep', '--days', '1000'],
        fault: issued('lego-http.example.com', true),
      },
      {
        what: 'renews by itself what was revoked',
        before: () => revokeAll(world, 'lego-http.example.com'),
        args: [...bound, ...byHttp, ...names('lego-http.example.com'), 'renew', '--no-random-sleep'],
        fault: issued('lego-http.example.com'),
      },
      {
        what: 'an IP address by http-01',
        args: [...bound, ...byHttp, ...names('127.0.0.1'), 'run', '--profile', 'inside'],
        fault: issued('127.0.0.1'),
      },
      {
        what: 'an IP address by tls-alpn-01',
        args: [...bound, '--path', `${home}-ip`, ...byTls, ...names('127.0.0.1'), 'run', '--profile', 'inside'],
        fault: issued('127.0.0.1'),
      },
      {
        what: 'revokes by account',
        args: [...bound, ...names('lego-tls.example.com'), 'revoke', '--reason', '4'],
        fault: revoked('lego-tls.example.com'),
      },
    ];
  },
};

const CLIENTS: readonly Client[] = [certbot, lego];
