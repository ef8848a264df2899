// reseal address show | set: the addresses in certificates and DNS records, as the store records them.
import { EXIT, Problem } from '../kernel/problem.ts';
import type { AddressChange, Command } from './command.ts';
import { table } from './values.ts';

export const addressShow: Command = {
  about: 'show the addresses that go into certificates and DNS records',
  store: 'existing',
  examples: ['address show'],
  positionals: [],
  options: {},
  async run(_given, { withAddresses }) {
    const found = await withAddresses((addresses) => addresses.list());
    const rows = found.map((one) => [one.variable, one.isConfigured ? 'configured' : 'derived', one.value]);
    return {
      json: { addresses: found.map(({ isConfigured, ...one }) => ({ ...one, configured: isConfigured })) },
      text: table(['VARIABLE', 'SOURCE', 'VALUE'], rows),
    };
  },
};

const changeText = ({ variable, before, after, breaks }: AddressChange): string =>
  `${variable}\n  from ${before}\n  to   ${after}\n  ${breaks}`;

export const addressSet: Command = {
  about: 'change an address deliberately: shows what stops working, and with --yes records the new one',
  store: 'existing',
  examples: [
    'address set --public-url https://certs.example.com',
    'address set --pki-url http://pki.example.com --yes',
    'address set --issuer-names ca.example.com,old-ca.example.com --yes',
  ],
  positionals: [],
  options: {
    'public-url': { type: 'string', about: 'the new RESEAL_PUBLIC_URL' },
    'pki-url': { type: 'string', about: 'the new RESEAL_PKI_URL' },
    'issuer-names': { type: 'string', about: 'the new RESEAL_ISSUER_NAMES, separated by commas' },
    yes: { type: 'boolean', about: 'confirm: record it' },
  },
  async run({ options }, { withAddresses }) {
    const given = {
      public_url: options['public-url']?.toString(),
      pki_url: options['pki-url']?.toString(),
      issuer_names: options['issuer-names']?.toString(),
    };
    const isConfirmed = options.yes === true;
    const changes = await withAddresses((addresses) => addresses.set(given, isConfirmed));
    if (changes.length === 0) {
      throw new Problem(EXIT.usage, 'this changes nothing', 'Give a new address; see: reseal address set --help');
    }
    const next = isConfirmed
      ? `Recorded. Commands use it from now on. Restart every instance with ${changes
          .filter(({ name }) => given[name as keyof typeof given] !== undefined)
          .map(({ variable, after }) => `${variable}=${after}`)
          .join(' ')}; until then they use the old one.`
      : 'Nothing is changed yet. Confirm with --yes.';
    return {
      json: { changes, recorded: isConfirmed },
      text: `${changes.map(changeText).join('\n')}\n\n${next}`,
      exitCode: isConfirmed ? EXIT.ok : EXIT.usage,
    };
  },
};
