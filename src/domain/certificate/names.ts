// DNS names and IP addresses: the accepted spelling, which names a product can certify, and how a reissue changes a set of
// names. Control of a name is checked in validation/. The public suffix list is passed in as a function.
import type { Localized } from '../../kernel/locale.ts';
import { isNeverCalled } from '../egress/address-verdict.ts';
import { canonicalAddress, parseAddress } from '../egress/addresses.ts';
import { Refusal } from '../errors.ts';

/** Every name costs a proof, a CAA check and certificate bytes, so an unbounded list is a denial of service. */
export const MAX_NAMES = 100;
const MAX_NAME_LENGTH = 253;
const MAX_LABEL_LENGTH = 63;
const MAX_EXCERPT = 60;
/** Eight groups of which the last two are written as IPv4. */
const MAX_ADDRESS_LENGTH = 45;

/** Names that mean something inside a network only: single-label and reserved names, and IP addresses. */
export const PRIVATE_NAMES = ['internal', 'ip'] as const;
export type PrivateName = (typeof PRIVATE_NAMES)[number];

export interface NameRules {
  readonly allowsWildcard: boolean;
  readonly isPublicTrust: boolean;
  /** Never used under public trust. */
  readonly privateNames: readonly PrivateName[];
  readonly registrableDomain: RegistrableDomain;
}

/** Returns undefined for a public suffix, and for names under a top-level domain that is not on the list. */
export type RegistrableDomain = (name: string) => string | undefined;

/** The canonical spelling of a DNS name or an IP address. Throws `invalid_domain` if there is none. */
export const certifiedName = (text: string, field: string): string => addressName(text) ?? dnsName(text, field);

/** No DNS name is one: its last label is not a number. */
export const isAddress = (name: string): boolean => parseAddress(name) !== undefined;

function addressName(text: string): string | undefined {
  const address = text.length > MAX_ADDRESS_LENGTH ? undefined : parseAddress(text);
  return address && canonicalAddress(address);
}

/**
 * Returns the canonical spelling by which a name is compared, stored and certified: lower case, A-labels, no final dot.
 * Throws `invalid_domain` if there is none.
 */
export function dnsName(text: string, field: string): string {
  // First, to bound the work of every check below. One extra character for the final dot.
  if (text.length > MAX_NAME_LENGTH + 1) throw uncertifiable(text, field, TOO_LONG);
  if (isUnicode(text)) return convertedName(text, field);
  const name = withoutFinalDot(text.toLowerCase());
  if (PLAIN.test(name) && name.length <= MAX_NAME_LENGTH) return name;
  const fault = FAULTS.find(([isAtFault]) => isAtFault(hostOf(name), name));
  if (fault) throw uncertifiable(text, field, fault[1]);
  return name;
}

export const isWildcard = (name: string): boolean => name.startsWith('*.');

/** The name without a leading `*.`. */
export const hostOf = (name: string): string => (isWildcard(name) ? name.slice(2) : name);
export const withoutFinalDot = (name: string): string => (name.endsWith('.') ? name.slice(0, -1) : name);
const someLabel = (host: string, test: (label: string) => boolean): boolean => host.split('.').some(test);

const TOO_LONG: Localized = {
  en: `a name has at most ${MAX_NAME_LENGTH} characters, and each part between dots ${MAX_LABEL_LENGTH}.`,
  zh: `域名最多 ${MAX_NAME_LENGTH} 个字符，每个标签最多 ${MAX_LABEL_LENGTH} 个字符。`,
};

/**
 * Nearly every name. None of the faults below applies to it: at most one wildcard, labels of letters, digits and inner
 * hyphens but no A-labels, and a letter at the beginning of the last.
 */
const PLAIN = /^(?:\*\.)?(?:(?!xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*(?!xn--)[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Spelling faults, the most specific first. `host` is the name without `*.`. */
const FAULTS: readonly (readonly [isAtFault: (host: string, name: string) => boolean, why: Localized])[] = [
  [
    (_, name) => name === '',
    {
      en: 'it is empty. Send [] for the common name alone; a reissue without dns_names keeps the current names.',
      zh: '名称为空。如只需通用名称请发送 []；重签时不发送 dns_names 则保留现有域名。',
    },
  ],
  [
    (host) => host.includes('*'),
    {
      en: 'write a wildcard as *.example.com, with one asterisk.',
      zh: '通配符须写作 *.example.com，且只能有一个星号。',
    },
  ],
  [
    (host) => /^\d+(\.\d+){3}$/.test(host) || (/:.*:/.test(host) && /^[[\]0-9a-f:.%]+$/.test(host)),
    {
      en: 'an IP address is written as 192.0.2.1 or 2001:db8::1, without brackets, zone, final dot or wildcard; only products of private trust certify it.',
      zh: 'IP 地址须写作 192.0.2.1 或 2001:db8::1，不带方括号、区域标识、末尾的点或通配符；仅私有信任的产品支持 IP 地址。',
    },
  ],
  [
    (host) => host.includes('_'),
    { en: 'a host name has no underscore. Rename the host.', zh: '主机名不能包含下划线，请更换主机名。' },
  ],
  [
    (host) => /[^a-z0-9.-]/.test(host),
    {
      en: 'send the bare name: letters, digits, hyphens and dots, without scheme, port, path or blanks.',
      zh: '请只发送域名本身：字母、数字、连字符和点，不含协议、端口、路径或空白。',
    },
  ],
  [
    (host) => someLabel(host, (label) => label === ''),
    { en: 'there is nothing before, after or between dots. Remove the extra dot.', zh: '存在空标签，请去掉多余的点。' },
  ],
  [(_, name) => name.length > MAX_NAME_LENGTH, TOO_LONG],
  [(host) => someLabel(host, (label) => label.length > MAX_LABEL_LENGTH), TOO_LONG],
  [
    (host) => someLabel(host, (label) => label.startsWith('-') || label.endsWith('-')),
    { en: 'a part between dots neither begins nor ends with a hyphen.', zh: '标签不能以连字符开头或结尾。' },
  ],
  [
    // Resolvers and browsers parse such a name as an IPv4 address, decimal or hexadecimal.
    (host) => /(^|\.)(\d+|0x[0-9a-f]*)$/.test(host),
    {
      en: 'the last part of a name is not a number. Send the full DNS name.',
      zh: '顶级域不能是数字，请发送完整域名。',
    },
  ],
  [
    (host) => someLabel(host, (label) => label.startsWith('xn--') && !isALabel(label)),
    {
      en: 'a part that begins with xn-- is not a valid A-label. Encode the name again.',
      zh: '以 xn-- 开头的标签不是有效的 A-label，请重新编码。',
    },
  ],
];

/**
 * The URL parser does not check ASCII hosts. An ideographic full stop (U+3002) forces it to decode, validate and
 * re-encode every label; a label that does not survive the round trip is not a valid A-label.
 */
const isALabel = (label: string): boolean => URL.parse(`https://${label}\u3002com/`)?.hostname === `${label}.com`;

const isUnicode = (text: string): boolean => /[\u0080-\uffff]/.test(text);

/**
 * IDNA 2008 has letters, marks and digits. Symbols and other dots are converted too, but not registered as read, and
 * characters that are not displayed are dropped silently. Compatibility forms (a full-width letter, the Kelvin sign)
 * are found by normalization.
 */
const NOT_IN_U_LABEL = /[^\p{L}\p{M}\p{Nd}.*-]|\p{DI}/u;

/** Converts U-labels. The answers show both forms, because names that look alike may differ (homographs). */
function convertedName(text: string, field: string): string {
  const name = aLabelForm(text);
  if (name !== undefined && text.normalize('NFKC') === text && !NOT_IN_U_LABEL.test(text)) return name;
  throw uncertifiable(text, field, asALabel(name));
}

const asALabel = (remedy: string | undefined): Localized =>
  remedy === undefined
    ? { en: 'send it as an A-label (xn--…).', zh: '请以 A-label（xn--…）形式发送。' }
    : { en: `send it as an A-label: ${remedy}`, zh: `请以 A-label 形式发送：${remedy}` };

/** The canonical spelling if there is one, otherwise something that matches no name. Never throws. */
export function spelledName(text: string): string {
  const short = text.slice(0, MAX_NAME_LENGTH + 1);
  return (
    addressName(short) ?? (isUnicode(short) ? aLabelForm(short) : undefined) ?? withoutFinalDot(short.toLowerCase())
  );
}

/** Returns undefined if the A-labels are not a valid name. */
function aLabelForm(text: string): string | undefined {
  const wildcard = isWildcard(text) ? '*.' : '';
  const host = text.slice(wildcard.length);
  // Other ASCII characters would end the host of the URL, and the suggestion would drop the rest of the input.
  if (/[^\u0080-\uffffA-Za-z0-9.-]/.test(host)) return undefined;
  try {
    return dnsName(wildcard + (URL.parse(`https://${host}/`)?.hostname ?? ''), '');
  } catch {
    return undefined;
  }
}

/** Throws `invalid_domain` if the product cannot certify this well-formed name. */
export function requireCertifiable(name: string, rules: NameRules, field: string): void {
  const allows = (kind: PrivateName) => !rules.isPublicTrust && rules.privateNames.includes(kind);
  const address = parseAddress(name);
  if (address) {
    if (!allows('ip')) throw uncertifiable(name, field, NO_ADDRESSES);
    // No web server there is ever asked, and a host with such an address is not known by it to others.
    if (isNeverCalled({ address, prefix: 8 * address.length })) throw uncertifiable(name, field, NO_HOST);
    return;
  }
  if (isWildcard(name) && !rules.allowsWildcard) throw uncertifiable(name, field, NO_WILDCARD);
  const host = hostOf(name);
  if (!allows('internal')) {
    if (!host.includes('.')) throw uncertifiable(name, field, SINGLE_LABEL);
    const dotted = `.${host}`;
    if (NOT_PUBLIC.some((suffix) => dotted.endsWith(suffix))) throw uncertifiable(name, field, INTERNAL);
  }
  if (!rules.isPublicTrust) return;
  if (/(?:^|\.)(?!xn)[^.]{2}--/.test(host)) throw uncertifiable(name, field, RESERVED_LABEL);
  if (rules.registrableDomain(host) === undefined) throw uncertifiable(name, field, PUBLIC_SUFFIX);
}

/**
 * Suffixes that cannot be registered publicly: special-use names of RFC 6761, 6762, 7686, 8375 and 9476, `internal`,
 * and the reverse zones, which public certificates must not contain. `example.com` is a registered domain, so sandbox
 * and documentation can use it; `.example` and `.test` are reserved.
 */
const NOT_PUBLIC = [
  ...['local', 'localhost', 'internal', 'home.arpa', 'test', 'example', 'invalid', 'onion', 'alt'],
  ...['in-addr.arpa', 'ip6.arpa'],
].map((suffix) => `.${suffix}`);

const NO_WILDCARD: Localized = {
  en: 'the product has no wildcards. List the names one by one.',
  zh: '该产品不支持通配符，请逐个列出域名。',
};
const NO_ADDRESSES: Localized = {
  en: 'the product certifies no IP addresses. Send a DNS name, or choose a product of private trust with ip among its private_names.',
  zh: '该产品不支持 IP 地址，请发送域名，或选用 private_names 含 ip 的私有信任产品。',
};
const NO_HOST: Localized = {
  en: 'the address is link-local, multicast, unspecified, mapped, or that of a cloud metadata service. Send the address of a host.',
  zh: '该地址为链路本地、组播、未指定、映射地址或云元数据服务地址，请发送主机地址。',
};
const SINGLE_LABEL: Localized = {
  en: 'a name without a dot is not unique on the internet. Send the full DNS name.',
  zh: '没有点的名称在互联网上不唯一，请发送完整域名。',
};
const INTERNAL: Localized = {
  en: 'names of this kind are internal or reserved. Use a public name, or a product of private trust with internal among its private_names.',
  zh: '此类名称为内部或保留名称，请使用公网域名，或选用 private_names 含 internal 的私有信任产品。',
};
const RESERVED_LABEL: Localized = {
  en: 'two hyphens in third and fourth place are reserved for A-labels.',
  zh: '第三、四位的连字符保留给 A-label 使用。',
};
const PUBLIC_SUFFIX: Localized = {
  en: 'it covers a whole public suffix, or ends in none. Send a name below a registered domain.',
  zh: '该名称覆盖整个公共后缀，或不以公共后缀结尾，请发送已注册域名下的名称。',
};

/** Returns the common name first, then `dnsNames` if given, else the current names; without duplicates. */
export function combineNames(
  commonName: string | undefined,
  dnsNames: readonly string[] | undefined,
  current: readonly string[],
): string[] {
  const names = new Set(dnsNames ?? current);
  if (commonName === undefined) return [...names];
  names.delete(commonName);
  return [commonName, ...names];
}

export function differenceOf(current: readonly string[], requested: readonly string[]) {
  if (current.length === requested.length && current.every((name, index) => name === requested[index]))
    return { added: [], removed: [] };
  const [before, after] = [new Set(current), new Set(requested)];
  return { added: requested.filter((name) => !before.has(name)), removed: current.filter((name) => !after.has(name)) };
}

/** Throws `invalid_sans`, not `invalid_domain`: the length of the list is wrong, no single name. */
export function requireMaxNames(names: readonly string[], field: string): void {
  if (names.length <= MAX_NAMES) return;
  throw new Refusal('invalid_sans', {
    field,
    reason: {
      en: `A certificate has at most ${MAX_NAMES} names, these are ${names.length}. Split them over several orders.`,
      zh: `一张证书最多 ${MAX_NAMES} 个域名，当前为 ${names.length} 个，请拆分到多个订单。`,
    },
  });
}

function uncertifiable(name: string, field: string, why: Localized): Refusal {
  // Bounded, and without control, bidi or separator characters, which could forge log lines or reorder the text.
  const shown = name.slice(0, MAX_EXCERPT).replace(/[\p{C}\p{Z}]/gu, '?') + (name.length > MAX_EXCERPT ? '…' : '');
  return new Refusal('invalid_domain', {
    field,
    reason: { en: `"${shown}" cannot be certified: ${why.en}`, zh: `“${shown}”无法用于证书：${why.zh}` },
  });
}
