// The names that a CSR asks for: common names of its subject, and the subject alternative names of its extension request
// (RFC 2986, RFC 2985 5.4.2). Orders name them elsewhere; an ACME client repeats in the CSR what it has ordered.
import { certifiedName } from '../../domain/certificate/names.ts';
import { canonicalAddress } from '../../domain/egress/addresses.ts';
import { Refusal } from '../../domain/errors.ts';
import { DerError, DerReader } from '../der/reader.ts';
import { bytesOf } from './csr.ts';

const COMMON_NAME = '2.5.4.3';
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const SUBJECT_ALT_NAME = '2.5.29.17';
/** Context-specific, primitive. */
const DNS_NAME = 0x82;
const IP_ADDRESS = 0x87;
/** More than a certificate has, and each is compared. */
const MAX_NAMES = 200;

/** In canonical spelling, without duplicates. The CSR must have been read: its form and signature are not checked here. */
export function csrNames(text: string): string[] {
  try {
    const info = new DerReader(bytesOf(text)).sequence().sequence();
    info.integer();
    const common = commonNames(info.sequence());
    info.any();
    const names = [...common, ...altNames(info.context(0))];
    if (names.length > MAX_NAMES) throw new DerError('too many names');
    return [...new Set(names.map((name) => certifiedName(name, 'csr')))];
  } catch (error) {
    // A name that cannot be certified is none that was ordered.
    if (error instanceof DerError || error instanceof Refusal) throw unreadable(error);
    throw error;
  }
}

function commonNames(subject: DerReader): string[] {
  const names: string[] = [];
  while (!subject.isAtEnd) {
    const together = subject.set();
    while (!together.isAtEnd) {
      const attribute = together.sequence();
      const type = attribute.oid();
      const { content } = attribute.primitive();
      if (type === COMMON_NAME) names.push(Buffer.from(content).toString('utf8'));
    }
  }
  return names;
}

function altNames(attributes: DerReader | undefined): string[] {
  const names: string[] = [];
  while (attributes && !attributes.isAtEnd) {
    const attribute = attributes.sequence();
    if (attribute.oid() !== EXTENSION_REQUEST) continue;
    const extensions = attribute.set().sequence();
    while (!extensions.isAtEnd) {
      const extension = extensions.sequence();
      const id = extension.oid();
      let value = extension.primitive();
      if (!extension.isAtEnd) value = extension.primitive();
      if (id === SUBJECT_ALT_NAME) names.push(...generalNames(new DerReader(value.content).sequence()));
    }
  }
  return names;
}

function generalNames(list: DerReader): string[] {
  const names: string[] = [];
  while (!list.isAtEnd) {
    const { tag, content } = list.primitive();
    if (tag === DNS_NAME) names.push(Buffer.from(content).toString('latin1'));
    else if (tag === IP_ADDRESS && (content.length === 4 || content.length === 16))
      names.push(canonicalAddress(content));
    else throw new DerError('a name that is neither a DNS name nor an IP address');
  }
  return names;
}

const unreadable = (cause: unknown): Refusal =>
  new Refusal('invalid_csr', {
    field: 'csr',
    reason: {
      en: 'The names of the CSR, its common name and its subject alternative names, must be DNS names or IP addresses of the order.',
      zh: 'CSR 中的名称（通用名称与主题备用名称）须为订单中的域名或 IP 地址。',
    },
    cause,
  });
