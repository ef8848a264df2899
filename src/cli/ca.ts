// reseal ca list | import, reseal blocklist import
import { readFileSync } from 'node:fs';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Command } from './command.ts';
import { table, time } from './values.ts';

export const caList: Command = {
  store: 'existing',
  about: 'list roots and issuing authorities',
  examples: ['ca list'],
  positionals: [],
  options: {},
  async run(_given, { withAuthorities }) {
    const issuers = await withAuthorities(({ list }) => list());
    const rows = issuers.map((one) => [
      one.id,
      one.role,
      one.keyType,
      one.state,
      time(one.createdAt),
      one.hasKey ? 'here' : 'elsewhere',
    ]);
    return {
      json: {
        issuers: issuers.map(({ id, role, keyType, state, hasKey }) => ({
          id,
          role,
          key_type: keyType,
          state,
          has_key: hasKey,
        })),
      },
      text:
        rows.length === 0
          ? 'None yet: they are created on the first start.'
          : table(['ID', 'ROLE', 'KEY', 'STATE', 'CREATED', 'PRIVATE KEY'], rows),
    };
  },
};

export const caImport: Command = {
  store: 'creates',
  about: 'issue with your own certificate authority; the previous issuer of its key type is retired',
  examples: ['ca import --certificate issuing.pem --key issuing.key --root root.pem'],
  positionals: [],
  options: {
    certificate: { type: 'string', about: 'certificate of the issuing authority, PEM' },
    key: { type: 'string', about: 'its private key, PKCS#8 PEM' },
    root: { type: 'string', about: 'certificate of the root that issued it, PEM; its key is not needed' },
  },
  async run({ options }, { withAuthorities }) {
    const own = {
      certificate: fileOf('certificate', options.certificate),
      key: fileOf('key', options.key),
      root: fileOf('root', options.root),
    };
    const { id, keyType } = await withAuthorities(({ adopt }) => adopt(own));
    return {
      json: { issuer: { id, key_type: keyType } },
      text: `Issuer ${id} signs for ${keyType} keys. Running services use it within ten seconds.`,
    };
  },
};

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

function fileOf(option: string, file: unknown): string {
  try {
    return readFileSync(String(file ?? ''), 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Problem(
      EXIT.usage,
      `--${option} ${String(file ?? '')} cannot be read (${code})`,
      'Name a file that this user may read.',
      { cause: error },
    );
  }
}
