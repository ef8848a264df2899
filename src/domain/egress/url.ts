// Syntax of URLs that the service calls. The text is checked before it is parsed, because URL parsers are too lenient;
// the parsed result is what is used. Whether its addresses may be called is decided in address-verdict.ts.
import type { Localized } from '../../kernel/locale.ts';
import { Refusal } from '../errors.ts';
import { type Address, parseAddress, parsePort } from './addresses.ts';
import type { OutboundUrl } from './outbound.ts';

/**
 * In code points, as in JSON Schema. Keeps the host below the 253 characters of DNS, so the host's length needs no check
 * of its own.
 */
export const MAX_CALLBACK_URL = 256;
const HTTPS_PORT = 443;

/** Parses a callback URL; throws a Refusal. The reason never repeats the URL: its query may hold a secret. */
export function callbackUrl(text: string, field = 'url'): OutboundUrl {
  // Code points take one or two UTF-16 units: the first test only avoids counting a far too long text.
  if (text.length > 2 * MAX_CALLBACK_URL || [...text].length > MAX_CALLBACK_URL) throw invalidUrl(field, TOO_LONG);
  const { scheme, port, ...where } = parseParts(text, field);
  if (scheme !== 'https') throw new Refusal('callback_url_not_https', { field, reason: NOT_HTTPS });
  return { scheme, port: port ?? HTTPS_PORT, ...where };
}

/** Parses an http or https URL by the same rules; undefined if invalid. `port` is undefined unless written. */
export function webUrl(text: string): (Omit<OutboundUrl, 'port'> & { readonly port: number | undefined }) | undefined {
  try {
    const { scheme, ...where } = parseParts(text, '');
    return scheme === 'https' || scheme === 'http' ? { scheme, ...where } : undefined;
  } catch {
    return undefined;
  }
}

interface ParsedParts {
  /** In lower case; which schemes are allowed depends on the purpose. */
  readonly scheme: string;
  readonly host: string;
  readonly literal: Address | null;
  readonly port: number | undefined;
  readonly target: string;
}

function parseParts(text: string, field: string): ParsedParts {
  const textFault = TEXT_FAULTS.find(([isAtFault]) => isAtFault(text));
  if (textFault) throw invalidUrl(field, textFault[1]);
  const written = splitUrl(text);
  const partFault = PART_FAULTS.find(([isAtFault]) => isAtFault(written));
  if (partFault) throw invalidUrl(field, partFault[1]);
  const port = written.port === undefined ? undefined : parsePort(written.port);
  const host = parsedHost(written, port);
  if (host === undefined) throw invalidUrl(field, NOT_A_HOST);
  return {
    scheme: written.scheme.toLowerCase(),
    host,
    literal: parseAddress(host) ?? null,
    port,
    target: written.rest.startsWith('/') ? written.rest : `/${written.rest}`,
  };
}

interface WrittenParts {
  readonly scheme: string;
  readonly authority: string;
  /** Including brackets. */
  readonly host: string;
  readonly port: string | undefined;
  /** Path, query and fragment. */
  readonly rest: string;
}

const FORM = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/i;

function splitUrl(text: string): WrittenParts {
  const [, scheme = '', authority = '', rest = ''] = FORM.exec(text) ?? [];
  const [, host = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(authority) ?? [];
  return { scheme, authority, host, port, rest };
}

/**
 * The host as the WHATWG parser reads it, e.g. 127.0.0.1 for `127.1`. Undefined if it finds none, or a different one
 * than was checked. Every scheme is parsed as https, because the parser does not normalize hosts of unknown schemes.
 */
function parsedHost({ authority, host, rest }: WrittenParts, port = HTTPS_PORT): string | undefined {
  const parsed = URL.parse(`https://${authority}${rest}`);
  if (!parsed || Number(parsed.port || HTTPS_PORT) !== port) return undefined;
  const found = withoutBrackets(parsed.hostname);
  const isSame = isBracketed(host)
    ? isBracketed(parsed.hostname) && `${parseAddress(found)}` === `${parseAddress(withoutBrackets(host))}`
    : found === host.toLowerCase() || (parseAddress(found)?.length === 4 && ENDS_IN_NUMBER.test(host));
  return isSame ? found : undefined;
}

/** WHATWG "ends in a number": such hosts are parsed as IPv4, in decimal, octal or hexadecimal. */
const ENDS_IN_NUMBER = /(^|\.)(\d+|0x[0-9a-f]*)$/i;
/** Underscores are not allowed in host names, but names in private zones use them and DNS resolves them. */
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;

const isBracketed = (host: string): boolean => host.startsWith('[') && host.endsWith(']');
const withoutBrackets = (host: string): string => (isBracketed(host) ? host.slice(1, -1) : host);

const TOO_LONG: Localized = {
  en: `The URL has more than ${MAX_CALLBACK_URL} characters. Shorten it.`,
  zh: `URL 超过 ${MAX_CALLBACK_URL} 个字符，请缩短。`,
};
const NOT_HTTPS: Localized = {
  en: 'The URL begins with another scheme than https. Callbacks are only sent encrypted: send a URL with https://.',
  zh: 'URL 使用了 https 以外的协议。回调只通过加密连接发送，请使用 https:// 开头的 URL。',
};
const NOT_A_HOST: Localized = {
  en: 'The host of the URL is neither a DNS name nor an IP address. Correct it.',
  zh: 'URL 的主机既不是域名，也不是 IP 地址，请更正。',
};

/** Faults in the characters; the first match is reported, so the most specific come first. */
const TEXT_FAULTS: readonly (readonly [isAtFault: (text: string) => boolean, why: Localized])[] = [
  [
    (text) => /[\s\p{Cc}]/u.test(text),
    {
      en: 'The URL contains a blank, a line break or a control character. Remove it, or write it as %20 in the path.',
      zh: 'URL 含有空白、换行或控制字符，请删除，或在路径中写作 %20。',
    },
  ],
  [
    (text) => /[^!-~]/.test(text),
    {
      en: 'The URL contains a character outside ASCII. Send the host in A-labels (xn--…), and the rest percent-encoded.',
      zh: 'URL 含有非 ASCII 字符。主机请以 A-label（xn--…）形式发送，其余部分使用百分号编码。',
    },
  ],
  [
    (text) => text.includes('\\'),
    { en: 'The URL contains a backslash. Write a slash, or %5C.', zh: 'URL 含有反斜杠，请改用斜杠或 %5C。' },
  ],
  [
    (text) => !FORM.test(text),
    { en: 'The URL does not begin with https://. Send it in full.', zh: 'URL 未以 https:// 开头，请发送完整的 URL。' },
  ],
];

/** Faults in the parts; the first match is reported, so the most specific come first. */
const PART_FAULTS: readonly (readonly [isAtFault: (written: WrittenParts) => boolean, why: Localized])[] = [
  [
    ({ rest }) => rest.includes('#'),
    {
      en: 'The URL has a fragment, which is never sent. Remove # and what follows.',
      zh: 'URL 含有片段，片段不会被发送，请删除 # 及其后内容。',
    },
  ],
  [
    ({ authority }) => authority.includes('@'),
    {
      en: 'The URL holds a user name or a password. Remove all up to @; the callback carries an access key of its own.',
      zh: 'URL 含有用户名或密码，请删除 @ 及之前的部分；回调自带访问密钥。',
    },
  ],
  [
    ({ authority }) => authority.includes('%'),
    {
      en: 'The host of the URL contains a percent sign. Write it in plain letters, without a zone.',
      zh: 'URL 的主机含有百分号，请直接书写主机名，且不带区域标识。',
    },
  ],
  [
    ({ authority }) => /^[^[]*:.*:/.test(authority),
    {
      en: 'The URL has several colons in its host. Write an IPv6 address in brackets: https://[2001:db8::1]/.',
      zh: 'URL 的主机含有多个冒号。IPv6 地址请加方括号：https://[2001:db8::1]/。',
    },
  ],
  [
    ({ host }) => host === '',
    { en: 'The URL has no host. Write one after https://.', zh: 'URL 没有主机，请在 https:// 之后填写。' },
  ],
  [
    ({ host }) => host.endsWith('.'),
    { en: 'The host of the URL ends with a dot. Remove it.', zh: 'URL 的主机以点结尾，请删除。' },
  ],
  [
    ({ host }) =>
      isBracketed(host)
        ? parseAddress(withoutBrackets(host))?.length !== 16
        : !host.split('.').every((label) => LABEL.test(label)),
    NOT_A_HOST,
  ],
  [
    ({ port }) => port !== undefined && parsePort(port) === undefined,
    {
      en: 'The port of the URL is not a number from 1 to 65535. Correct it, or remove it with its colon.',
      zh: 'URL 的端口不是 1 到 65535 的数字，请更正，或连同冒号一并删除。',
    },
  ],
];

const invalidUrl = (field: string, reason: Localized): Refusal =>
  new Refusal('invalid_callback_url', { field, reason });
