// Lets Caddy order for three sites, one by each challenge that it answers by itself and one as it likes, and looks at the
// certificates that it serves.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';
import { issued, ordersOf, type World } from './acme-world.ts';
import type { Print } from './campaign.ts';

const MOST_MS = 60_000;
const SITES = {
  'http-01': 'caddy-http.example.com',
  'tls-alpn-01': 'caddy-tls.example.com',
  either: 'caddy-either.example.com',
} as const;

export async function runCaddy(program: string, world: World, print: Print): Promise<string[]> {
  const home = join(world.folder, 'caddy');
  mkdirSync(home);
  writeFileSync(join(home, 'Caddyfile'), caddyfile(world, home));
  const begun = performance.now();
  const caddy = spawn(program, ['run', '--config', 'Caddyfile'], { cwd: home, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(caddy, 'close');
  let output = '';
  for (const stream of [caddy.stdout, caddy.stderr])
    stream.on('data', (chunk) => (output = `${output}${chunk}`.slice(-4_000)));
  try {
    const broken: string[] = [];
    for (const [challenge, site] of Object.entries(SITES)) {
      const wrong = await servesIssued(world, site, () => performance.now() - begun < MOST_MS);
      print(`${program} ${challenge}: ${wrong ? 'FAILED' : 'ok'} (${Math.round(performance.now() - begun)} ms)`);
      if (wrong) broken.push(`${program} ${challenge}: ${wrong}\n${output}`);
    }
    return broken;
  } finally {
    caddy.kill('SIGTERM');
    await ended;
  }
}

/** Undefined once the site shows a certificate and the order is issued. */
async function servesIssued(world: World, site: string, hasTime: () => boolean): Promise<string | undefined> {
  for (;;) {
    const shown = await namesAt(world.tls, site);
    const wrong = shown === `DNS:${site}` ? issued(site)({ output: '', orders: ordersOf(world) }) : `it shows ${shown}`;
    if (wrong === undefined || !hasTime()) return wrong;
    await sleep(200);
  }
}

function namesAt(port: number, servername: string): Promise<string> {
  const socket = tls.connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false });
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.once('secureConnect', () => resolve(socket.getPeerX509Certificate()?.subjectAltName ?? 'nothing'));
  socket.once('error', (error) => resolve(error.message));
  return promise.finally(() => socket.destroy());
}

const caddyfile = ({ file, roots, http, tls: port }: World, home: string): string => `{
	admin off
	storage file_system ${home}/storage
	http_port ${http}
	https_port ${port}
	acme_ca ${file.acme?.directory}
	acme_ca_root ${roots}
	acme_eab {
		key_id ${file.acme?.kid}
		mac_key ${file.acme?.hmac_key}
	}
	email admin@example.com
	skip_install_trust
}

${site(SITES['http-01'], 'disable_tlsalpn_challenge', file, roots)}
${site(SITES['tls-alpn-01'], 'disable_http_challenge', file, roots)}
${SITES.either} {
	respond "hello"
}
`;

const site = (name: string, only: string, { acme }: World['file'], roots: string): string => `${name} {
	tls {
		issuer acme {
			dir ${acme?.directory}
			eab ${acme?.kid} ${acme?.hmac_key}
			trusted_roots ${roots}
			${only}
		}
	}
	respond "hello"
}
`;
