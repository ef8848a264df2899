// Connects to one of the vetted addresses: TCP, peer address compared, then TLS verified for the host of the URL, or
// shaken hands for the certificate alone. Roots, ciphers, minimum version and peer verification are passed explicitly,
// because environment variables and flags change Node's defaults.
import { constants } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { type Address, addressText, parseAddress } from '../../domain/egress/addresses.ts';
import type { OutboundUrl } from '../../domain/egress/outbound.ts';
import type { CallScope } from './call-scope.ts';
import { Connection, type VettedAddress } from './connection.ts';
import { certificateFailure, Failure, failureOf } from './failure.ts';

/** A name may have thousands of addresses; more than a few would leave too little time for each. */
const MAX_TRIED = 4;

/** Created once, at the first handshake: parsing the many roots takes tens of milliseconds. */
export function trustStore(extraRoots: readonly string[]): () => tls.SecureContext {
  let context: tls.SecureContext | undefined;
  return () => {
    context ??= tls.createSecureContext({
      ca: [...tls.rootCertificates, ...extraRoots],
      minVersion: 'TLSv1.2',
      ciphers: constants.defaultCoreCipherList,
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    });
    return context;
  };
}

interface ConnectOptions {
  readonly url: OutboundUrl;
  readonly addresses: readonly VettedAddress[];
  readonly trust: () => tls.SecureContext;
  readonly limitMs: number;
  readonly scope: CallScope;
  readonly trustsAny: boolean;
  /** Waits until a connection to the address may be opened. */
  readonly admit: ((address: Address) => Promise<Disposable>) | undefined;
}

export async function connect(options: ConnectOptions): Promise<Connection> {
  const { url, scope } = options;
  const endsAt = performance.now() + options.limitMs;
  const { socket, address } = await connectToAny(options, endsAt);
  if (url.scheme === 'http') return new Connection(socket, address);
  scope.enter('tls');
  const secured = await scope.within(endsAt - performance.now(), () => handshake(socket, verifying(options), scope));
  return new Connection(socket, address, secured, {
    version: secured.getProtocol() ?? '',
    certificateEndsAt: secured.getPeerX509Certificate()?.validToDate.getTime() ?? 0,
  });
}

interface ShownCertificate {
  readonly address: Address;
  /** The protocol that the server chose, if any. */
  readonly protocol: string | null;
  readonly certificate: Uint8Array;
}

/** Offers one protocol to one name, and returns the certificate unverified. */
export async function showCertificate(
  options: ConnectOptions,
  { serverName, protocol }: { readonly serverName: string; readonly protocol: string },
): Promise<ShownCertificate> {
  const { trust, scope } = options;
  const endsAt = performance.now() + options.limitMs;
  const { socket, address } = await connectToAny(options, endsAt);
  scope.enter('tls');
  const asked: tls.ConnectionOptions = {
    secureContext: trust(),
    rejectUnauthorized: false,
    servername: serverName,
    ALPNProtocols: [protocol],
  };
  const secured = await scope.within(endsAt - performance.now(), () => handshake(socket, asked, scope));
  const certificate = secured.getPeerX509Certificate()?.raw;
  if (!certificate) throw new Failure('tls_failed');
  return { address, protocol: secured.alpnProtocol || null, certificate };
}

/** Tries one address after the other, each with an equal share of the remaining time: the first may drop every packet. */
async function connectToAny(
  { url: { port }, addresses, scope, admit }: ConnectOptions,
  endsAt: number,
): Promise<{ readonly socket: net.Socket; readonly address: Address }> {
  scope.enter('connect');
  const tried = addresses.slice(0, MAX_TRIED);
  let first: Failure | undefined;
  for (const [index, { address }] of tried.entries()) {
    // The slot first: what was opened last is closed first.
    const slot = admit && scope.own(slotFor(admit(address)));
    const socket = scope.own(new net.Socket());
    try {
      const share = (endsAt - performance.now()) / (tried.length - index);
      await scope.within(share, async () => {
        await slot?.acquired;
        // The call may have ended in the queue, and connect() would revive the socket.
        if (socket.destroyed) throw new Failure('canceled');
        await connectTcp(socket, address, port);
      });
      return { socket, address };
    } catch (error) {
      socket.destroy();
      slot?.destroy();
      if (!(error instanceof Failure) || error.reason === 'canceled') throw error;
      first ??= error;
    }
  }
  throw first ?? new Failure('connection_failed');
}

/** Released once, also if the call ends before it was acquired. */
function slotFor(acquired: Promise<Disposable>): { readonly acquired: Promise<Disposable>; destroy(): void } {
  let isDone = false;
  return {
    acquired,
    destroy() {
      if (!isDone) void acquired.then((slot) => slot[Symbol.dispose]());
      isDone = true;
    },
  };
}

function connectTcp(socket: net.Socket, address: Address, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    // Never removed: an error event without a listener would end the process, even after the call.
    socket.on('error', (error) => reject(failureOf('connect', error)));
    socket.once('connect', () => {
      const peer = parseAddress(socket.remoteAddress ?? '');
      if (peer && Buffer.compare(peer, address) === 0) resolve();
      else reject(new Failure('connection_failed'));
    });
    // Formatted from the vetted bytes, so that the system cannot read the text as another address.
    socket.connect({ host: addressText(address), port });
  });
}

function verifying({ url: { host, literal }, trust, trustsAny }: ConnectOptions): tls.ConnectionOptions {
  // The trailing dot is DNS syntax; server names and certificates do not have it.
  const name = host.replace(/\.$/, '');
  return {
    secureContext: trust(),
    rejectUnauthorized: !trustsAny,
    servername: literal ? '' : name,
    checkServerIdentity: (_servername, certificate) => tls.checkServerIdentity(name, certificate),
    ALPNProtocols: ['http/1.1'],
  };
}

function handshake(socket: net.Socket, options: tls.ConnectionOptions, scope: CallScope): Promise<tls.TLSSocket> {
  const secured = scope.own(tls.connect({ ...options, socket }));
  return new Promise((resolve, reject) => {
    secured.once('secureConnect', () => resolve(secured));
    secured.once('close', () => reject(new Failure('connection_closed')));
    secured.on('error', (error) => {
      // Typed as Error, but Node sets the error code, and only if the handshake succeeded and the certificate failed.
      const fault = secured.authorizationError as unknown as string | null;
      reject(fault ? certificateFailure(fault) : failureOf('tls', error));
    });
  });
}
