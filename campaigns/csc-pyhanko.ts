// Signs PDFs through pyHanko's CSC signer with cloud-held keys, and lets pyHanko judge the signatures: against the service's
// root, with its CRLs and OCSP answers. Compares what pyHanko sends with test/fixtures/csc-pyhanko.json, which the test
// without Python replays. Needs Python with pyHanko.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposableSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { readConfig } from '../src/config/config.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import type { Key } from '../test/support/app.ts';
import { CODE } from '../test/support/cloud-keys.ts';
import type { KeyKind } from '../test/support/csr.ts';
import { csrFor } from '../test/support/orders.ts';
import type { Campaign } from './campaign.ts';
import { makeKeys, offline, type Settings, startService, withStore } from './service.ts';

const SCRIPT = fileURLToPath(new URL('./csc-pyhanko.py', import.meta.url));
const EXCHANGE = new URL('../test/fixtures/csc-pyhanko.json', import.meta.url);
const PYTHON = process.env.PYTHON ?? 'python3';
const SCRIPT_MS = 120_000;
const KINDS: readonly KeyKind[] = ['p256', 'rsa2048'];

export const cscPyhanko: Campaign = {
  about:
    "signs PDFs with pyHanko's CSC signer and cloud-held keys; needs Python with pyHanko, $PYTHON names it (N keys)",
  defaultN: 2,
  async run(n, print) {
    const version = pyhankoVersion();
    if (version === undefined) {
      return [`${PYTHON} has no pyHanko, so nothing was proven: pip install 'pyhanko[async-http]', and set PYTHON`];
    }
    print(`pyHanko ${version}`);
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-csc-'));
    // Certificates carry the address of CRLs and OCSP answers, which pyHanko fetches.
    const port = await freePort();
    const settings = await offline({
      RESEAL_DATA_DIR: folder.path,
      RESEAL_PORT: String(port),
      RESEAL_PUBLIC_URL: `http://127.0.0.1:${port}`,
    });
    const orders = await placeSigningOrders(settings, n);
    const recorded: Recorded[] = JSON.parse(readFileSync(EXCHANGE, 'utf8'));
    const service = await startService(settings);
    try {
      const broken: string[] = [];
      for (const order of orders) {
        const held = await newCloudKey(service.url, order);
        await using proxy = await recordingProxy(service.url);
        const seen = await runScript({ ...held, ...order.key, url: proxy.url, pin: CODE });
        print(`${order.kind}: ${JSON.stringify(seen)}`);
        broken.push(...violations(seen).map((one) => `${order.kind}: ${one}`));
        const sent = proxy.requests.slice(0, recorded.length);
        if (order.kind === 'p256' && !isDeepStrictEqual(sent, recorded)) {
          broken.push(`pyHanko sends something else than the recorded exchange: ${JSON.stringify(sent)}`);
        }
      }
      return broken;
    } finally {
      await service.process.end('SIGTERM');
    }
  },
};

interface Verdict {
  readonly intact: boolean;
  readonly valid: boolean;
  readonly trusted: boolean;
  readonly revoked: boolean;
}

interface Seen {
  readonly bytes: number;
  readonly signed: Verdict;
  readonly forged: Verdict | null;
  readonly revoked: Verdict;
  /** What pyHanko says of a refused attempt, or `none`. */
  readonly afterRevocation: string;
  readonly afterLogout: string;
}

function violations({ signed, forged, revoked, afterRevocation, afterLogout }: Seen): string[] {
  const broken: string[] = [];
  const expect = (holds: boolean, otherwise: string) => holds || broken.push(otherwise);
  expect(signed.intact && signed.valid && signed.trusted && !signed.revoked, 'the signature does not validate');
  expect(forged?.intact === false, 'a forged document was not detected, or not made');
  expect(revoked.revoked && !revoked.trusted, 'the revocation of the certificate does not show');
  expect(afterRevocation !== 'none', 'an authorization outlived the revocation of its certificate');
  expect(afterLogout !== 'none', 'an access token outlived its revocation');
  return broken;
}

function pyhankoVersion(): string | undefined {
  const check = 'import pyhanko.sign.signers.csc_signer, importlib.metadata as it; print(it.version("pyhanko"))';
  const { status, stdout } = spawnSync(PYTHON, ['-c', check], { encoding: 'utf8', timeout: SCRIPT_MS });
  return status === 0 ? stdout.trim() : undefined;
}

async function runScript(given: object): Promise<Seen> {
  const child = spawn(PYTHON, [SCRIPT], { stdio: 'pipe', timeout: SCRIPT_MS });
  child.stdin.end(JSON.stringify(given));
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (code !== 0) throw new Error(`the script ended with ${code}: ${err}`);
  return JSON.parse(out);
}

interface SigningOrder {
  readonly key: Key;
  readonly id: string;
  readonly kind: KeyKind;
}

async function placeSigningOrders(settings: Settings, count: number): Promise<SigningOrder[]> {
  const keys = await makeKeys(settings, count);
  return await withStore(settings, async (app) => {
    const issuance = await openIssuance(app, readConfig(settings).config, Date.now);
    const placed = keys.map(async (key, index) => {
      const kind = KINDS[index % KINDS.length]!;
      const { orderId } = await issuance.placeOrder({
        ...{ accountId: key.accountId, productId: 'document-signing', alternativeId: null, actor: 'cli' },
        vouchesForNames: true,
        request: {
          ...{ commonName: 'Acme Ltd', csr: csrFor(kind), keySource: 'caller', signHash: 'sha256' },
          keepsEncryptionKey: false,
        },
      });
      return { key, id: orderId, kind };
    });
    return await Promise.all(placed).finally(() => issuance.close());
  });
}

/** By reissue, as customers do. */
async function newCloudKey(url: string, { key, id }: SigningOrder) {
  const headers = { 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey, 'Content-Type': 'application/json' };
  // biome-ignore lint/suspicious/noExplicitAny: answers differ in shape; each caller knows which it expects.
  const call = async (path: string, body?: object): Promise<any> => {
    const sent = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers };
    const response = await fetch(url + path, sent);
    if (response.status !== 200) throw new Error(await response.text());
    return await response.json();
  };
  const certificate = { csr_from: 'sign-cloud-csc', sign_hash: 'sha256' };
  const reissued = await call(`/openapi/v3/orders/${id}/reissue`, { certificate, sign_key_pin: CODE });
  const path = `/openapi/v3/certs/${reissued.data.certificate.id}`;
  const credentialID = (await call(path)).data.Certificate.cloud_key_id;
  const { cert } = await call('/csc/v1/credentials/info', { credentialID, certificates: 'chain' });
  const root = `-----BEGIN CERTIFICATE-----\n${cert.certificates.at(-1)}\n-----END CERTIFICATE-----\n`;
  return { credentialID, root, revokeUrl: `${url}${path}/revoke` };
}

/** A request to the signing API, with what differs from run to run replaced. */
interface Recorded {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

const VARYING: Readonly<Record<string, unknown>> = {
  credentialID: 'CREDENTIAL',
  PIN: 'PIN',
  SAD: 'SAD',
  hash: ['HASH'],
};

async function recordingProxy(target: string) {
  const requests: Recorded[] = [];
  const server = createServer(async (request, response) => {
    const { url = '', headers } = request;
    const body = await text(request);
    const { authorization = '', accept = '', 'content-type': type = '' } = headers;
    const fields = Object.entries(JSON.parse(body)).map(([name, value]) => [name, VARYING[name] ?? value]);
    requests.push({
      path: url,
      headers: { authorization: authorization.replace(/ .*/, ' …'), accept, 'content-type': type },
      body: Object.fromEntries(fields),
    });
    const answer = await fetch(target + url, {
      method: 'POST',
      headers: { authorization, accept, 'content-type': type },
      body,
    });
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    response.end(await answer.text());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    requests,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}
