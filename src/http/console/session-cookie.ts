// The cookie that carries the token of a console session. It is read under /console/api only.
import type { IncomingHttpHeaders } from 'node:http';
import { Secret } from '../../domain/secret.ts';

/** Browsers take a `__Host-` cookie over TLS only, for this very host, with Path=/ (RFC 6265bis). */
const SECURE_NAME = '__Host-reseal';
const PLAIN_NAME = 'reseal_console';

const isSecure = (publicUrl: string): boolean => publicUrl.startsWith('https:');
const nameAt = (publicUrl: string): string => (isSecure(publicUrl) ? SECURE_NAME : PLAIN_NAME);

const attributes = (publicUrl: string): string =>
  `Path=/; HttpOnly; SameSite=Strict${isSecure(publicUrl) ? '; Secure' : ''}`;

export const sessionCookie = (publicUrl: string, token: Secret, maxAgeSeconds: number): string =>
  `${nameAt(publicUrl)}=${token.reveal()}; Max-Age=${maxAgeSeconds}; ${attributes(publicUrl)}`;

export const clearedCookie = (publicUrl: string): string =>
  `${nameAt(publicUrl)}=; Max-Age=0; ${attributes(publicUrl)}`;

/** 32 bytes in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** A name that occurs twice counts as none: another host of the domain may have set one of them. */
export function tokenIn({ cookie = '' }: IncomingHttpHeaders, publicUrl: string): Secret | undefined {
  const prefix = `${nameAt(publicUrl)}=`;
  const found = cookie.split(/; */).filter((one) => one.startsWith(prefix));
  const token = found[0]?.slice(prefix.length) ?? '';
  return found.length === 1 && TOKEN.test(token) ? new Secret(token) : undefined;
}
