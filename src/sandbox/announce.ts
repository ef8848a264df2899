// The greeting of a running sandbox: its addresses, commands to paste, and how it is less strict than a real service.
import { BlockList, isIP } from 'node:net';
import type { SandboxFile } from './folder.ts';

/** Paths and hosts of the receiver that inject faults. */
const MISBEHAVIOURS = ['/status/503', '/delay/12', '/reset', '/endless', '/redirect', '/silent', '/garbage'];
const FAULTY_HOSTS = ['untrusted', 'wrong-host', 'private', 'broken', 'missing'];

/** CSRs to paste. Their private keys were discarded. */
export interface PastedCsrs {
  readonly p256: string;
  readonly sm2: string;
}

/** `signInLink` only if this is printed to a terminal. */
export function announcement(sandbox: SandboxFile, file: string, csrs: PastedCsrs, signInLink?: string): string {
  const [account] = sandbox.accounts;
  const key = account?.credentials.find(({ kind }) => kind === 'standard');
  const orderOf = (product: string) => sandbox.orders.find((one) => one.product === product);
  const [order, signing, dual] = [orderOf('ssl-dv'), orderOf('document-signing'), orderOf('ssl-sm2-dual')];
  const headers = `-H 'X-CC-Key-ID: ${key?.key_id}' \\
    -H 'X-CC-Auth-Key: ${key?.auth_key}'`;
  const post = (id: string | undefined, body: object) => `curl -s ${sandbox.base_url}/openapi/v3/orders/${id}/reissue \\
    ${headers} \\
    -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  const plain = { certificate: { csr: csrs.p256, common_name: order?.common_name, sign_hash: 'sha256' } };
  const cloud = { certificate: { csr_from: 'sign-cloud-csc', sign_hash: 'sha256' }, sign_key_pin: 'my-access-code' };
  const sm2 = { certificate: { csr: csrs.sm2, common_name: dual?.common_name, sign_hash: 'sm3', un_modify_key: true } };
  const callback = { url: sandbox.receiver.url, access_key: 'my-callback-key' };
  const { port } = new URL(sandbox.receiver.url);
  return `
Reseal sandbox   ${sandbox.base_url}
Console          ${signInLink ?? `${sandbox.base_url}/console/   (a link to sign in: reseal console login)`}
Reference        ${sandbox.base_url}/docs
Accounts, keys   ${file}
Trust these      ${sandbox.trust.roots.join(' ')}

Paste this to see that it works:

  curl -s ${sandbox.base_url}/openapi/v3/account \\
    ${headers}

And this to reissue the certificate of a sandbox order (the private key of this CSR was discarded: use your own):

  ${post(order?.id, plain)}

Each reissue calls the account back with order:issued. The receiver of the account runs here; see what arrived, and how:

  reseal sandbox callbacks
  reseal callback deliveries ${account?.id}

This one makes a key that the service holds; sign with it as requests/cloud-keys.http shows:

  ${post(signing?.id, cloud)}

This one reissues SM2 dual certificates, and keeps their encryption key:

  ${post(dual?.id, sm2)}

And this to test a callback with an address and a key of your own:

  curl -s -X PUT ${sandbox.base_url}/openapi/v3/account/callback/test \\
    ${headers} \\
    -H 'Content-Type: application/json' -d '${JSON.stringify(callback)}'

  Other urls misbehave: ${MISBEHAVIOURS.join('  ')}
  or have faults of their own: ${FAULTY_HOSTS.map((host) => `https://${host}.sandbox.test:${port}/`).join('  ')}

And this to order with certbot, which answers the challenge through the sandbox's DNS (others: docs/acme-clients.md):

  ${certbot(sandbox)}

  Servers for ACME clients: ${sandbox.challenges?.url}/set-txt, /add-http01, /add-tlsalpn01 and so on take what answers
  challenges, as pebble-challtestsrv does. RESEAL_SANDBOX_BAD_NONCES and its like make trouble (docs/configuration.md).

To add a name and prove it, publish records here: reseal sandbox dns set NAME TXT VALUE (README, "A reissue that adds a name")

Only because this is a sandbox:
  - An operator of the console exists: sandbox, who may change everything.
  - ${sandbox.accounts.length} demo accounts exist, and their keys are in clear in sandbox.json (mode 0600).
  - ${sandbox.orders.length} demo orders exist, and their names count as validated without proof.
  - Callbacks may go to ${[sandbox.receiver.address, ...sandbox.receiver.allow].join(', ')} on this machine, and the roots above are trusted in receivers.
  - Names are looked up in a name server of our own, ${sandbox.dns.address}, unless RESEAL_DNS_SERVERS is set.

Stop with Ctrl-C. Start afresh with: reseal sandbox reset
`;
}

/** Paths of its own, so that it needs no root. */
function certbot({ acme, challenges }: SandboxFile): string {
  const body = (more: string) => `{\\"host\\":\\"_acme-challenge.$CERTBOT_DOMAIN\\"${more}}`;
  const send = (operation: string, more = '') => `'curl -s -d "${body(more)}" ${challenges?.url}/${operation}'`;
  return `certbot certonly -n --agree-tos --register-unsafely-without-email -d www.example.com \\
    --config-dir certbot --work-dir certbot --logs-dir certbot --server ${acme?.directory} \\
    --eab-kid ${acme?.kid} --eab-hmac-key ${acme?.hmac_key} \\
    --manual --preferred-challenges dns \\
    --manual-auth-hook ${send('set-txt', ',\\"value\\":\\"$CERTBOT_VALIDATION\\"')} \\
    --manual-cleanup-hook ${send('clear-txt')}`;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

const isLoopback = (host: string): boolean =>
  host === 'localhost' || (isIP(host) !== 0 && LOOPBACK.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4'));

/** A warning, for a host that other machines can reach. */
export const exposure = (host: string): string | undefined =>
  isLoopback(host)
    ? undefined
    : `!!! WARNING !!! This sandbox listens on ${host}, where other machines may reach it.
!!! Its keys are in plain text in its data folder, and it issues without real domain validation.
!!! Unset RESEAL_HOST to keep it on this machine, or run a real service: reseal serve`;
