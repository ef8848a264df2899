// reseal ca root export | sign | crl-request | sign-crl
import { EXIT, Problem } from '../kernel/problem.ts';
import { fileOf } from './ca.ts';
import { ceremonyText, ceremonyView, type OfflineRoot } from './ceremony.ts';
import type { Arguments, Command, Context } from './command.ts';
import { firstLineOf, newFile, required, time } from './values.ts';

const PASSPHRASE = {
  type: 'string',
  about: 'file with the passphrase in its first line, - for standard input; otherwise it is asked for',
} as const;
const KEY = { type: 'string', about: 'the key file of ca root export (required)' } as const;
const CHAIN = { type: 'string', about: 'the chain file of ca root export (required)' } as const;
const OUT = { type: 'string', about: 'new file for the result (required)' } as const;

const DEFAULT_LIST_DAYS = 180;
/** The Baseline Requirements allow twelve months for the list of a root. */
const MAX_LIST_DAYS = 365;
const DEFAULT_YEARS = 10;
const MAX_YEARS = 25;

async function passphraseOf({ options }: Arguments, { askSecret }: Context, isNew: boolean): Promise<string> {
  const file = options['passphrase-file'];
  if (file !== undefined) return firstLineOf(String(file));
  const instead = 'Give it in a file: --passphrase-file FILE';
  const passphrase = await askSecret('Passphrase: ', instead);
  if (isNew && (await askSecret('Once more: ', instead)) !== passphrase) {
    throw new Problem(EXIT.usage, 'the passphrases differ', 'Run the command again. Nothing was changed.');
  }
  return passphrase;
}

function numberOf(option: string, given: unknown, fallback: number, most: number): number {
  if (given === undefined) return fallback;
  const number = /^\d{1,4}$/.test(String(given)) ? Number(given) : 0;
  if (number >= 1 && number <= most) return number;
  throw new Problem(EXIT.usage, `--${option} ${String(given)} is out of range`, `Use a number from 1 to ${most}.`);
}

export const rootExport: Command = {
  store: 'existing',
  about: 'write the key of a root to a file under a passphrase; with --remove-key it leaves the store for good',
  examples: ['ca root export ID --out root.key --remove-key'],
  positionals: ['ID'],
  options: {
    out: { ...OUT, about: 'new file for the key, as PKCS#8 under the passphrase (required)' },
    chain: { type: 'string', about: 'new file for its certificate (default: the file of the key with .chain.pem)' },
    'remove-key': { type: 'boolean', about: 'remove the key from the store, once the file was opened and used' },
    'passphrase-file': PASSPHRASE,
    'crl-days': { type: 'string', about: `how long the last list signed here lives (default ${DEFAULT_LIST_DAYS})` },
  },
  async run(given, context) {
    const {
      positionals: [id = ''],
      options,
    } = given;
    const key = required('out', options.out?.toString());
    const chain = options.chain?.toString() ?? `${key}.chain.pem`;
    const isRemoved = options['remove-key'] === true;
    const crlDays = numberOf('crl-days', options['crl-days'], DEFAULT_LIST_DAYS, MAX_LIST_DAYS);
    const passphrase = await passphraseOf(given, context, true);
    const { ceremony, nextUpdate, left, backups } = await context.withCustody(({ exportRoot }) =>
      exportRoot(id, { key, chain }, { passphrase, isRemoved, crlDays }),
    );
    const copies = [
      `The store holds the key no more. A running service forgets it within ten seconds; restart it, so that no memory holds it.`,
      `Copies of the sealed key may still be in:`,
      ...left.map((place) => `  ${place}`),
      ...backups.map(({ takenAt, file }) => `  the backup ${file}, taken at ${time(takenAt)}`),
      ...(backups.length === 0 ? ['  copies of the store that were made by other means; no backup is recorded'] : []),
      `All of them need the seal key: reseal seal rotate, then destroy the former seal key and its copies.`,
      `The list of this root is valid until ${time(nextUpdate)}; reseal doctor asks for the next one 30 days before.`,
    ];
    return {
      json: {
        ...{ root_id: id, key, chain, removed: isRemoved, next_update: nextUpdate === null ? null : time(nextUpdate) },
        backups: backups.map(({ file, takenAt, digest }) => ({ file, taken_at: time(takenAt), digest })),
        ...{ left, ceremony: ceremonyView(ceremony) },
      },
      text: [
        `${key}: the key, under the passphrase. ${chain}: its certificate. Both were read back, and the key has signed.`,
        ...(isRemoved ? copies : ['The key is still in the store: --remove-key removes it.']),
        ceremonyText(ceremony),
      ].join('\n'),
    };
  },
};

interface SigningFiles {
  /** What is to be signed. */
  readonly input: string;
  readonly key: string;
  readonly chain: string;
  readonly passphrase: string;
}

/** Signs with an exported root what the file `name` asks for; writes the result, and the record beside it. */
async function signed<T>(
  given: Arguments,
  context: Context,
  name: 'CSR' | 'REQUEST',
  sign: (offline: OfflineRoot, files: SigningFiles) => Promise<T & { readonly result: string | Uint8Array }>,
) {
  const { positionals, options } = given;
  const out = required('out', options.out?.toString());
  const files = {
    ...{ input: fileOf(name, positionals[0] ?? ''), chain: fileOf('--chain', options.chain) },
    ...{ key: fileOf('--key', options.key), passphrase: await passphraseOf(given, context, false) },
  };
  const offline = await context.offlineRoot();
  return await newFile(out, async (write) => {
    const done = await sign(offline, files);
    write(done.result);
    const inputs = { [name.toLowerCase()]: files.input, chain: files.chain };
    const ceremony = offline.record(inputs, { result: done.result });
    const file = `${out}.ceremony.json`;
    await newFile(file, async (writeRecord) => writeRecord(`${JSON.stringify(ceremony, null, 2)}\n`));
    return {
      ...done,
      out,
      ceremony,
      text: `The record of this ceremony: ${file}\n${JSON.stringify(ceremony, null, 2)}`,
    };
  });
}

export const rootSign: Command = {
  store: 'none',
  about: 'sign the request of an issuing authority with an exported root; needs no store and no network',
  examples: ['ca root sign issuing.csr --key root.key --chain root.key.chain.pem --out issuing.pem'],
  positionals: ['CSR'],
  options: {
    ...{ key: KEY, chain: CHAIN, out: { ...OUT, about: 'new file for the certificate and its chain (required)' } },
    years: { type: 'string', about: `how long it lives, at most as long as the root (default ${DEFAULT_YEARS})` },
    'passphrase-file': PASSPHRASE,
  },
  async run(given, context) {
    const years = numberOf('years', given.options.years, DEFAULT_YEARS, MAX_YEARS);
    const done = await signed(given, context, 'CSR', async (offline, { input: csr, ...files }) => {
      const { chain: result, ...rest } = await offline.sign({ csr, ...files, years });
      return { ...rest, result };
    });
    const { out, subject, allows, notAfter, ceremony, text } = done;
    return {
      json: { file: out, subject, allows, not_after: time(notAfter), ceremony },
      text: `${out}: ${subject}, which may sign for ${allows.join(', ')}, until ${time(notAfter)}. Bring it to the service: reseal ca install ${out}\n${text}`,
    };
  },
};

export const rootCrlRequest: Command = {
  store: 'existing',
  about: 'write what an offline root has to sign: the number of its next list, and everything that is revoked',
  examples: ['ca root crl-request ID list.json'],
  positionals: ['ID', 'OUT'],
  options: {},
  async run({ positionals: [id = '', out = ''] }, { withCustody }) {
    const { number, ceremony } = await newFile(out, (write) => withCustody(({ crlRequest }) => crlRequest(id, write)));
    return {
      json: { root_id: id, number, file: out, ceremony: ceremonyView(ceremony) },
      text: `${out}: list number ${number}. Sign it with: reseal ca root sign-crl ${out}\n${ceremonyText(ceremony)}`,
    };
  },
};

export const rootSignCrl: Command = {
  store: 'none',
  about: 'sign the list of an exported root; needs no store and no network',
  examples: ['ca root sign-crl list.json --key root.key --chain root.key.chain.pem --out root.crl'],
  positionals: ['REQUEST'],
  options: {
    ...{ key: KEY, chain: CHAIN, out: { ...OUT, about: 'new file for the list (required)' } },
    days: { type: 'string', about: `how long it lives, at most ${MAX_LIST_DAYS} (default ${DEFAULT_LIST_DAYS})` },
    'passphrase-file': PASSPHRASE,
  },
  async run(given, context) {
    const days = numberOf('days', given.options.days, DEFAULT_LIST_DAYS, MAX_LIST_DAYS);
    const done = await signed(given, context, 'REQUEST', async (offline, { input: request, ...files }) => {
      const { crl: result, ...rest } = await offline.signCrl({ request, ...files, days });
      return { ...rest, result };
    });
    const { out, number, entries, nextUpdate, ceremony, text } = done;
    return {
      json: { file: out, number, entries, next_update: time(nextUpdate), ceremony },
      text: `${out}: list number ${number} with ${entries} entries, until ${time(nextUpdate)}. Bring it to the service: reseal crl install ${out}\n${text}`,
    };
  },
};
