// reseal ca list | import, reseal blocklist import
import { readFileSync } from 'node:fs';
import { isKeyHere, type KeyPlace, PURPOSES, type Purpose } from '../domain/certificate/authority.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Command } from './command.ts';
import { listOf, time } from './values.ts';

const KEY_WORDS: Readonly<Record<KeyPlace, string>> = {
  ...{ store: 'here', token: 'in a token', offline: 'offline', elsewhere: 'elsewhere' },
};

export const caList: Command = {
  store: 'existing',
  about: 'list roots and issuing authorities, what they sign for, and how much they have signed',
  examples: ['ca list'],
  positionals: [],
  options: {},
  async run(_given, { withAuthorities }) {
    const issuers = await withAuthorities(({ overview }) => overview());
    const blocks = issuers.map((one) =>
      [
        `${one.id}  ${one.subject}`,
        `  ${one.role}, ${one.state}, ${one.key} key ${KEY_WORDS[one.keyPlace]}, until ${time(one.notAfter)}`,
        ...(one.purposes.length > 0 ? [`  signs for ${one.purposes.join(', ')}`] : []),
        ...(one.role === 'issuing' && isKeyHere(one) ? [`  ${one.issued} issued, ${one.revoked} revoked`] : []),
        `  SHA-256 ${one.fingerprint}`,
      ].join('\n'),
    );
    return {
      json: {
        issuers: issuers.map((one) => ({
          ...{ id: one.id, role: one.role, state: one.state, subject: one.subject, purposes: one.purposes },
          ...{
            policy: one.policy,
            key_type: one.key.split(' ')[0],
            has_key: isKeyHere(one),
            key_place: one.keyPlace,
            not_after: time(one.notAfter),
          },
          ...{ fingerprint: one.fingerprint, issued: one.issued, revoked: one.revoked },
        })),
      },
      text: blocks.length === 0 ? 'None yet: roots are created on the first start.' : blocks.join('\n'),
    };
  },
};

export const KEY_URI = {
  type: 'string',
  about: 'where the key is in a token (PKCS#11): a pkcs11: URI as in RFC 7512, without its PIN',
} as const;
export const textOption = (given: unknown): string | undefined => (given === undefined ? undefined : String(given));

export const caImport: Command = {
  store: 'creates',
  about: 'issue with your own certificate authority, for the purposes you name; what signed for them before is retired',
  examples: [
    'ca import --for public-tls,private-tls chain.pem issuing.key',
    "ca import --for public-tls chain.pem --key-uri 'pkcs11:token=ca;object=issuing?module-name=softhsm2'",
  ],
  positionals: ['CHAIN', '[KEY]'],
  options: {
    for: { type: 'string', multiple: true, about: `what it signs for: ${PURPOSES.join(', ')}; repeatable` },
    policy: { type: 'string', about: 'the certificate policy of what it signs, an OID, if its chain allows several' },
    'key-uri': KEY_URI,
  },
  async run({ positionals: [chain = '', key], options }, { withAuthorities }) {
    const purposes = purposesOf(listOf(options.for));
    const policy = policyOf(options.policy);
    const uri = textOption(options['key-uri']);
    if ((uri === undefined) === (key === undefined)) {
      throw new Problem(
        EXIT.usage,
        'name either KEY or --key-uri',
        'KEY is a file; --key-uri is for a key in a token.',
      );
    }
    const place = uri === undefined ? { pem: fileOf('KEY', key) } : { uri };
    const own = { chain: fileOf('CHAIN', chain), key: place, purposes, policy };
    const { id, keyType } = await withAuthorities(({ adopt }) => adopt(own));
    return {
      json: { issuer: { id, key_type: keyType, purposes, policy } },
      text: [
        `Issuer ${id} signs for ${purposes.join(', ')} with its ${keyType} key${uri === undefined ? '' : ' in the token'}. Running services use it within ten seconds.`,
        ...(keyType in ONLY_CURVES
          ? [
              `It signs keys on curves, with ${ONLY_CURVES[keyType]}. For others import one on RSA too: until then they are signed below this service's own root.`,
            ]
          : []),
      ].join('\n'),
    };
  },
};

/** The digest of authorities that sign no RSA keys. */
const ONLY_CURVES: Readonly<Record<string, string>> = { p256: 'sha256', p384: 'sha384' };

export function purposesOf(given: readonly string[]): Purpose[] {
  const words = new Set(given.flatMap((one) => one.split(',')).filter((one) => one !== ''));
  const remedy = `Name what it signs for: --for with one or more of ${PURPOSES.join(', ')}.`;
  if (words.size === 0) throw new Problem(EXIT.usage, '--for is missing', remedy);
  return [...words].map((word) => {
    const purpose = PURPOSES.find((one) => one === word);
    if (!purpose) throw new Problem(EXIT.usage, `--for ${word} is not known`, remedy);
    return purpose;
  });
}

export function policyOf(given: unknown): string | null {
  if (given === undefined) return null;
  const text = String(given);
  if (text.length <= 64 && /^[0-2](\.(0|[1-9]\d{0,8})){2,}$/.test(text)) return text;
  throw new Problem(EXIT.usage, `--policy ${text} is not an object identifier`, 'Write it like 1.3.6.1.4.1.99999.1.');
}

export const blocklistImport: Command = {
  store: 'creates',
  about:
    'add compromised keys to the blocklist: a file with one key per line, as SHA-256 of the public key (SPKI), as entry of Debian’s openssl-blacklist, or as RSA modulus, in hex',
  examples: ['blocklist import keys.txt', 'blocklist import blacklist.RSA-2048'],
  positionals: ['FILE'],
  options: {},
  async run({ positionals: [file = ''] }, { withAuthorities }) {
    const text = fileOf('FILE', file);
    const { blocked, counts } = await withAuthorities(({ block }) => block(text));
    const forms = Object.entries(counts).filter(([, count]) => count > 0);
    return {
      json: { blocked, forms: counts },
      text: [
        `${blocked} keys are on the blocklist: no certificate will be issued for them.`,
        ...forms.map(([form, count]) => `  ${form.padEnd(12)} ${count}`),
      ].join('\n'),
    };
  },
};

export function fileOf(option: string, file: unknown): string {
  try {
    return readFileSync(String(file ?? ''), 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Problem(
      EXIT.usage,
      `${option} ${String(file ?? '')} cannot be read (${code})`,
      'Name a file that this user may read.',
      { cause: error },
    );
  }
}
