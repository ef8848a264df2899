// Reads and writes the addresses that the store records (config/addresses.ts says what they are). A service claims them when
// it starts; commands use what it claimed.

import { settingsIn } from '../adapters/store/access/settings.ts';
import { openEngine } from '../adapters/store/engine/engine.ts';
import { engineAt } from '../adapters/store/store.ts';
import type { AddressChange, AddressCommands } from '../cli/command.ts';
import {
  ADDRESS_NAMES,
  ADDRESSES,
  type Addresses,
  type AddressName,
  type AddressRecord,
  parseAddressRecord,
  requireSameAddresses,
  usedAddresses,
} from '../config/addresses.ts';
import { type Config, listeningUrl, withAddresses } from '../config/config.ts';
import { VARIABLES, type Values } from '../config/variables.ts';
import type { Store } from '../domain/store.ts';
import type { Log } from '../kernel/log.ts';
import { type Diagnostic, EXIT, Problem } from '../kernel/problem.ts';
import { auditLog, byOperator } from '../usecases/access/audit.ts';
import type { App } from './app.ts';

type Settings = Pick<Store, 'settings'>;
const SETTING = 'addresses';

/**
 * Records the addresses of this configuration, and returns it with those that are used: its own, else recorded ones, else
 * ones derived from the listening address. Throws a Problem if a configured one differs from a recorded, configured one.
 */
export async function claimAddresses({ settings }: Settings, config: Config): Promise<Config> {
  const own = config.addresses;
  const text = await settings.claim(SETTING, JSON.stringify(own));
  const recorded = parseAddressRecord(text) ?? own;
  requireSameAddresses(own.configured, recorded.configured);
  const configured = { ...recorded.configured, ...own.configured };
  const next: AddressRecord = { configured, used: usedAddresses(configured, listeningUrl(config)) };
  if (JSON.stringify(next) !== text) await settings.put(SETTING, JSON.stringify(next));
  return withAddresses(config, next);
}

/**
 * The configuration of a command, with the recorded addresses. Throws a Problem if a configured one differs, or if the
 * command issues and neither a service nor a variable says what belongs into certificates.
 */
export async function recordedAddresses(store: Settings, config: Config, isIssuing: boolean): Promise<Config> {
  const { configured } = config.addresses;
  const recorded = await readAddresses(store);
  if (recorded) {
    requireSameAddresses(configured, recorded.used);
    return withAddresses(config, recorded);
  }
  if (!isIssuing) return config;
  if (configured.public_url !== undefined) return await claimAddresses(store, config);
  throw new Problem(
    EXIT.configuration,
    'no service has run on this store yet, and RESEAL_PUBLIC_URL is not set, so the addresses for certificates are unknown',
    'Start the service first, or set RESEAL_PUBLIC_URL to the URL that its callers will use.',
  );
}

const readAddresses = async ({ settings }: Settings): Promise<AddressRecord | undefined> =>
  parseAddressRecord(await settings.get(SETTING));

export function warnOfAddresses({ publicUrl, authority }: Config, log: Log): void {
  if (publicUrl !== undefined) return;
  const text = `RESEAL_PUBLIC_URL is not set: certificates name ${authority.pkiUrl} for CRLs and OCSP, which other machines may not reach`;
  log({ event: 'warning', text });
}

/** For a store that can be opened. Writes nothing. */
export async function checkAddresses(config: Config): Promise<Diagnostic> {
  const check = 'addresses';
  const db = openEngine(engineAt(config.database), () => {});
  try {
    const settings = settingsIn(db);
    const recorded = await readAddresses({ settings });
    if (!recorded) return { check, state: 'ok', text: 'none recorded yet; the first start records them' };
    requireSameAddresses(config.addresses.configured, recorded.used);
    const { public_url, pki_url, issuer_names } = recorded.used;
    const text = `public URL ${public_url}, PKI URL ${pki_url}, issuer names ${issuer_names}`;
    if (recorded.configured.public_url !== undefined || (await settings.get('mode')) === 'sandbox') {
      return { check, state: 'ok', text };
    }
    const remedy = 'Set RESEAL_PUBLIC_URL to the URL that callers use, and restart.';
    return { check, state: 'warning', text: `derived, and in certificates: ${text}`, remedy };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { check, state: 'problem', text: error.message, remedy: error.remedy };
  } finally {
    await db.destroy();
  }
}

export function addressCommands({ store, now, newId }: Pick<App, 'store' | 'now' | 'newId'>): AddressCommands {
  const audit = auditLog({ now, newId });
  async function recorded(from: Settings): Promise<AddressRecord> {
    const record = await readAddresses(from);
    if (record) return record;
    throw new Problem(
      EXIT.refused,
      'no service has run on this store yet, so it has no addresses',
      `Set ${ADDRESS_NAMES.map((name) => ADDRESSES[name].variable).join(', ')}, and start it: reseal serve`,
    );
  }
  return {
    async list() {
      const { configured, used } = await recorded(store);
      return ADDRESS_NAMES.map((name) => {
        const { variable } = ADDRESSES[name];
        return { name, variable, value: used[name], isConfigured: configured[name] !== undefined };
      });
    },
    set: (given, isConfirmed) =>
      store.transaction(async (tx) => {
        const before = await recorded(tx);
        const configured = { ...before.configured, ...parsed(given) };
        // A public URL that is derived stays as it is.
        const after = { configured, used: usedAddresses(configured, before.used.public_url) };
        const changes = changesBetween(before.used, after.used);
        if (!isConfirmed) return changes;
        await tx.settings.put(SETTING, JSON.stringify(after));
        for (const change of changes) {
          const details = { before: change.before, after: change.after };
          await audit(tx, byOperator(null), 'address:changed', change.name, details);
        }
        return changes;
      }),
  };
}

const changesBetween = (before: Addresses, after: Addresses): AddressChange[] =>
  ADDRESS_NAMES.filter((name) => before[name] !== after[name]).map((name) => {
    const { variable, breaks } = ADDRESSES[name];
    return { name, variable, before: before[name], after: after[name], breaks };
  });

/** As the variables are parsed. */
function parsed(given: Readonly<Partial<Record<AddressName, string>>>): AddressRecord['configured'] {
  const values = ADDRESS_NAMES.flatMap((name) => {
    const text = given[name];
    if (text === undefined) return [];
    const { variable } = ADDRESSES[name];
    const result = VARIABLES[variable].parse(text) as { value: Values[typeof variable] } | { reason: string };
    if ('reason' in result) {
      const { example } = VARIABLES[variable];
      throw new Problem(EXIT.usage, `--${name.replace('_', '-')} ${result.reason}`, `Write it like ${example}.`);
    }
    return [[name, String(result.value)]];
  });
  return Object.fromEntries(values);
}
