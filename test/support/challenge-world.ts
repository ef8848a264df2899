// What a challenge of ACME is validated against, on loopback: name servers, a web server and a TLS server. The checks are
// those of the service, with its resolver, perspectives and outbound function; no store is needed.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { readConfig } from '../../src/config/config.ts';
import { PRODUCTS, type Product } from '../../src/domain/catalog/products.ts';
import { type AddressRule, network } from '../../src/domain/egress/addresses.ts';
import { type DnsServer, startDnsServer } from '../../src/sandbox/dns-server.ts';
import { type ChallengeToValidate, validateChallenge } from '../../src/usecases/acme/validate-challenge.ts';
import { openValidation } from '../../src/wiring/validation.ts';
import { alpnCertificate, asIdentity } from './alpn-certificates.ts';
import { NOON, newFolder } from './app.ts';
import { Receiver, type Script } from './receiver.ts';

export const ISSUER = 'ca.example.net';
export const TENANT_URI = 'https://ca.example.net/accounts/tenant';
export const ACME_URL = 'https://ca.example.net/acme/acct/1';
export const TOKEN = 'evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA';
const THUMBPRINT = '9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI';
export const KEY_AUTHORIZATION = `${TOKEN}.${THUMBPRINT}`;
export const DIGEST = createHash('sha256').update(KEY_AUTHORIZATION).digest('base64url');
export const PUBLIC = PRODUCTS.find(({ id }) => id === 'ssl-dv')!;

const EVERYWHERE: readonly AddressRule[] = [{ ...network('127.0.0.0/8'), port: null }];

export type Asked = Pick<ChallengeToValidate, 'name' | 'type'> & Partial<ChallengeToValidate>;
export type ChallengeWorld = Awaited<ReturnType<typeof startChallengeWorld>>;

interface Ports {
  readonly dns: number;
  readonly http: number;
  readonly tls: number;
}

/**
 * `further`: number of resolvers in addition to the primary one. `outside` stands for the public internet. `ports`: servers
 * of the test to be asked instead of those that are started here.
 */
export async function startChallengeWorld(further = 0, outside = EVERYWHERE, ports: Partial<Ports> = {}) {
  await using unlessStarted = new AsyncDisposableStack();
  const resolvers: DnsServer[] = [];
  for (let count = 0; count <= further; count += 1)
    resolvers.push(unlessStarted.use(await startDnsServer({ host: '127.0.0.1', port: 0 })));
  const web = unlessStarted.use(await Receiver.start());
  const alpn = unlessStarted.use(await AlpnServer.start());
  const [first = 0, ...more] = resolvers.map(({ port }) => port);
  const [primary = '', ...others] = [ports.dns ?? first, ...more].map((port) => `127.0.0.1:${port}`);
  const { config } = readConfig({
    ...{ RESEAL_DATA_DIR: newFolder(), RESEAL_ISSUER_NAMES: ISSUER, RESEAL_PUBLIC_URL: 'https://ca.example.net' },
    ...(others.length > 0 && { RESEAL_DNS_PERSPECTIVES: others.join() }),
  });
  const parts = { now: () => NOON, secret: new Uint8Array(32), log: () => {}, metrics: { resolversUnreachable() {} } };
  const places = {
    dnsServers: [primary],
    allow: outside,
    httpPort: ports.http ?? web.port,
    tlsPort: ports.tls ?? alpn.port,
  };
  const validate = validateChallenge(openValidation(config, parts, places));
  const opened = unlessStarted.move();
  const [dns] = resolvers as [DnsServer, ...DnsServer[]];
  let domains = 0;
  return {
    ...{ dns, resolvers, web, alpn },
    /** A name with an address here that no other test uses. */
    newDomain(): string {
      const domain = `name${++domains}.com`;
      for (const resolver of resolvers) resolver.set(domain, 'A', ['127.0.0.1']);
      return domain;
    },
    validate: (asked: Asked) =>
      validate({
        ...{ accountId: 'tenant', acmeAccount: ACME_URL, product: PUBLIC, token: TOKEN, thumbprint: THUMBPRINT },
        ...{ limitMs: 20_000, ...asked },
      }),
    /** `http-01` (the proof to record), or the type and the detail of the problem: a result in one line. */
    async outcome(asked: Asked): Promise<string> {
      const result = await this.validate(asked);
      return result.isOk
        ? (result.evidence.proof ?? 'nothing to record')
        : `${result.problem.type}: ${result.problem.detail.en}`;
    },
    /** Serves one answer for whatever is asked for. */
    serve(answer: string | Script): void {
      web.script = typeof answer === 'string' ? (socket) => void socket.end(answer, 'latin1') : answer;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export const privateProduct = (validationNetworks: readonly string[]): Product => ({
  ...PUBLIC,
  ...{
    id: 'inside',
    trust: 'private',
    validationNetworks: validationNetworks.map((one) => ({ ...network(one), port: null })),
  },
});

/** A TLS server with the ALPN protocols and the certificate that a test wants. */
class AlpnServer implements AsyncDisposable {
  protocols: readonly string[] = ['acme-tls/1'];
  certificate: (serverName: string) => Uint8Array = (host) => alpnCertificate(host, KEY_AUTHORIZATION);
  /** In place of a handshake. */
  onAccept: ((socket: net.Socket) => void) | null = null;
  maxVersion: tls.SecureVersion = 'TLSv1.3';
  /** To whatever is sent after the handshake. */
  answer = '';
  readonly serverNames: string[] = [];
  readonly #server: net.Server;
  readonly #open = new Set<net.Socket>();

  private constructor(server: net.Server) {
    this.#server = server;
    server.on('connection', (socket) => {
      this.#open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.#open.delete(socket));
      if (this.onAccept) return this.onAccept(socket);
      this.#shake(socket);
    });
  }

  static async start(): Promise<AlpnServer> {
    const server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new AlpnServer(server);
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  #shake(socket: net.Socket): void {
    const context = (host: string) => tls.createSecureContext(asIdentity(this.certificate(host)));
    const secured = new tls.TLSSocket(socket, {
      isServer: true,
      ALPNProtocols: [...this.protocols],
      maxVersion: this.maxVersion,
      secureContext: context('no-name.example'),
      SNICallback: (host, done) => {
        this.serverNames.push(host);
        done(null, context(host));
      },
    });
    secured.on('error', () => {});
    secured.on('data', () => void secured.end(this.answer, 'latin1'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
