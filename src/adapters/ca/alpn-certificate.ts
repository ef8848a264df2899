// Reads the certificate of a tls-alpn-01 handshake: untrusted bytes of whichever server answers. Never throws.
import { X509Certificate } from 'node:crypto';
import type { AlpnCertificate, AltName } from '../../domain/acme/alpn-certificate.ts';
import { DerReader } from '../der/reader.ts';
import { readExtensions, readUpToKey } from './certificate-reader.ts';

const SUBJECT_ALT_NAME = '2.5.29.17';
const ACME_IDENTIFIER = '1.3.6.1.5.5.7.1.31';
const DNS_NAME = 0x82;
const IP_ADDRESS = 0x87;
const CONSTRUCTED = 0x20;
/** A certificate that answers has some hundred bytes. */
const MAX_BYTES = 16 * 1024;

/** Returns undefined for what is no certificate, or has an extension twice. */
export function readAlpnCertificate(der: Uint8Array): AlpnCertificate | undefined {
  if (der.length > MAX_BYTES) return undefined;
  try {
    return read(der);
  } catch {
    return undefined;
  }
}

function read(der: Uint8Array): AlpnCertificate | undefined {
  const whole = new DerReader(der);
  whole.any();
  whole.end();
  const { issuer, subject, rest } = readUpToKey(der);
  const { byId, hasDuplicates } = readExtensions(rest);
  rest.end();
  if (hasDuplicates) return undefined;
  const [names, identifier] = [byId.get(SUBJECT_ALT_NAME), byId.get(ACME_IDENTIFIER)];
  return {
    isSelfSigned: Buffer.compare(issuer, subject) === 0 && verifiesItself(der),
    altNames: names ? altNamesOf(names.value) : null,
    identifier: identifier ? { isCritical: identifier.isCritical, digest: only(identifier.value) } : null,
  };
}

function verifiesItself(der: Uint8Array): boolean {
  const parsed = new X509Certificate(der);
  return parsed.verify(parsed.publicKey);
}

function only(value: Uint8Array): Uint8Array {
  const reader = new DerReader(value);
  const content = reader.octetString();
  reader.end();
  return content;
}

function altNamesOf(value: Uint8Array): AltName[] {
  const outer = new DerReader(value);
  const list = outer.sequence();
  outer.end();
  const names: AltName[] = [];
  while (!list.isAtEnd) names.push(altNameOf(list.any()));
  return names;
}

function altNameOf(element: Uint8Array): AltName {
  if ((element[0] ?? 0) & CONSTRUCTED) return { kind: 'other' };
  const { tag, content } = new DerReader(element).primitive();
  if (tag === DNS_NAME) return { kind: 'dns', name: Buffer.from(content).toString('latin1') };
  return tag === IP_ADDRESS ? { kind: 'ip', address: content } : { kind: 'other' };
}
