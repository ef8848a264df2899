// From vetted addresses to a connection that a request can be sent over: TCP to one of them, the peer compared again,
// then TLS, verified for the host of the URL. Nothing of it listens to the environment: roots, ciphers, the lowest
// version and the refusal of unverified peers are all given explicitly, since variables and flags change the defaults.
import { constants } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { type Address, addressText, parseAddress } from '../../domain/egress/addresses.ts';
import type { OutboundUrl } from '../../domain/egress/outbound.ts';
import type { Attempt } from './attempt.ts';
import { certificateFailure, Failure, failureOf } from './failure.ts';

/** A name may have thousands of addresses; trying more than a few only makes the wait for each too short. */
const MAX_TRIED = 4;

export interface Vetted {
  readonly address: Address;
  /** Let through by an allow rule alone. */
  readonly isPrivate: boolean;
}

export interface Connection {
  readonly socket: net.Socket;
  readonly isPrivate: boolean;
}

/** Costs some ten milliseconds, for the roots are many: once, not for every call. */
export const trustIn = (extraRoots: readonly string[]): tls.SecureContext =>
  tls.createSecureContext({
    ca: [...tls.rootCertificates, ...extraRoots],
    minVersion: 'TLSv1.2',
    ciphers: constants.defaultCoreCipherList,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  });

export async function connect(
  url: OutboundUrl,
  vetted: readonly Vetted[],
  trust: tls.SecureContext,
  limitMs: number,
  attempt: Attempt,
): Promise<Connection> {
  const endsAt = performance.now() + limitMs;
  attempt.enter('connect');
  const { socket, isPrivate } = await connectToOne(url.port, vetted.slice(0, MAX_TRIED), endsAt, attempt);
  if (url.scheme === 'http') return { socket, isPrivate };
  attempt.enter('tls');
  return { socket: await secure(socket, url, trust, endsAt - performance.now(), attempt), isPrivate };
}

/** In turn, each with an equal share of the time that is left: the first may swallow every packet. */
async function connectToOne(
  port: number,
  vetted: readonly Vetted[],
  endsAt: number,
  attempt: Attempt,
): Promise<Connection> {
  let first: Failure | undefined;
  for (const [index, { address, isPrivate }] of vetted.entries()) {
    const socket = attempt.own(new net.Socket());
    try {
      const share = (endsAt - performance.now()) / (vetted.length - index);
      await attempt.within(share, () => connected(socket, address, port));
      return { socket, isPrivate };
    } catch (error) {
      socket.destroy();
      if (!(error instanceof Failure) || error.reason === 'canceled') throw error;
      first ??= error;
    }
  }
  throw first ?? new Failure('connection_failed');
}

function connected(socket: net.Socket, address: Address, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    // The listener stays: an error that nobody listens to would end the process, whenever it comes.
    socket.on('error', (error) => reject(failureOf('connect', error)));
    socket.once('connect', () => {
      const peer = parseAddress(socket.remoteAddress ?? '');
      if (peer && Buffer.compare(peer, address) === 0) resolve();
      else reject(new Failure('connection_failed'));
    });
    // Written from the number that was judged, so that no text can mean another address to the system than to us.
    socket.connect({ host: addressText(address), port });
  });
}

async function secure(
  socket: net.Socket,
  url: OutboundUrl,
  trust: tls.SecureContext,
  limitMs: number,
  attempt: Attempt,
): Promise<tls.TLSSocket> {
  const secured = await attempt.within(limitMs, () => verified(socket, url, trust, attempt));
  attempt.tls = {
    version: secured.getProtocol() ?? '',
    certificateEndsAt: secured.getPeerX509Certificate()?.validToDate.getTime() ?? 0,
  };
  return secured;
}

function verified(
  socket: net.Socket,
  { host, literal }: OutboundUrl,
  trust: tls.SecureContext,
  attempt: Attempt,
): Promise<tls.TLSSocket> {
  // A final dot belongs to DNS; neither server names nor certificates have one.
  const name = host.replace(/\.$/, '');
  const secured = attempt.own(
    tls.connect({
      socket,
      secureContext: trust,
      rejectUnauthorized: true,
      servername: literal ? '' : name,
      checkServerIdentity: (_servername, certificate) => tls.checkServerIdentity(name, certificate),
      ALPNProtocols: ['http/1.1'],
    }),
  );
  return new Promise((resolve, reject) => {
    secured.once('secureConnect', () => resolve(secured));
    secured.once('close', () => reject(new Failure('connection_closed')));
    secured.on('error', (error) => {
      // Declared as an error; it is the code, and only there when the handshake was fine and the certificate was not.
      const fault = secured.authorizationError as unknown as string | null;
      reject(fault ? certificateFailure(fault) : failureOf('tls', error));
    });
  });
}
