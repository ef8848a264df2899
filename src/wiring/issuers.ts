// Opens the issuers and keeps them up to date: those that an operator imports, those that are made here when they are first
// needed, and those that another process has made.
import { openAuthority } from '../adapters/ca/authority.ts';
import type { TokenKeys } from '../adapters/ca/issuer-key.ts';
import { endOfNew, ensureRoots, makeIssuer } from '../adapters/ca/issuers.ts';
import type { Config } from '../config/config.ts';
import type { Issuer, IssuerKeyType, IssuerSlot, Purpose } from '../domain/certificate/authority.ts';
import type { Clock } from '../domain/clock.ts';
import { keyedMutex } from '../kernel/concurrency.ts';
import type { App } from './app.ts';

export interface OpenIssuers {
  readonly authority: ReturnType<typeof openAuthority>;
  list(): readonly Issuer[];
  /** Takes up what has changed. */
  refresh(): Promise<void>;
  /** Takes up what has changed, unless the issuer is known. */
  know(issuerId: string): Promise<void>;
  /** Takes up what has changed, and tells whether an issuer signs for the purpose no more. */
  isRetired(issuerId: string, purpose: Purpose): Promise<boolean>;
  /** Makes the issuer of a slot, unless there is one. */
  make(slot: IssuerSlot): Promise<void>;
}

export async function openIssuers(
  { store, newId, log }: Pick<App, 'store' | 'newId' | 'log'>,
  { authority: settings }: Pick<Config, 'authority'>,
  { keyTypes, tokens }: { readonly keyTypes: readonly IssuerKeyType[]; readonly tokens: TokenKeys },
  now: Clock,
): Promise<OpenIssuers> {
  const tools = { store, now, newId };
  const withLock = keyedMutex();
  let issuers: readonly Issuer[] = await ensureRoots(tools, settings, keyTypes);
  const authority = openAuthority(issuers, settings.pkiUrl, {
    keyTypes,
    tokens,
    know,
    endOfNew: (keyType, known) => endOfNew(known, keyType, settings, now()),
  });

  // Calls that arrive while the store is read share the next read: unknown ids, which strangers can send, cost one between them.
  let queued: Promise<void> | undefined;
  const refresh = (): Promise<void> =>
    (queued ??= withLock('refresh', async () => {
      queued = undefined;
      if (statesOf(await store.issuers.listPublic()) === statesOf(issuers)) return;
      issuers = await store.issuers.list();
      authority.use(issuers);
      log({ event: 'issuers_changed', text: statesOf(issuers) });
    }));

  async function know(issuerId: string): Promise<void> {
    if (!issuers.some(({ id }) => id === issuerId)) await refresh();
  }

  async function isRetired(issuerId: string, purpose: Purpose): Promise<boolean> {
    await refresh();
    return !issuers.some(({ id, purposes }) => id === issuerId && purposes.includes(purpose));
  }

  const make = (slot: IssuerSlot): Promise<void> =>
    withLock(`${slot.purpose} ${slot.keyType}`, async () => {
      // Another request has made it meanwhile, or another process.
      await refresh();
      if (issuers.some((one) => one.keyType === slot.keyType && one.purposes.includes(slot.purpose))) return;
      await makeIssuer(tools, settings, slot);
      await refresh();
    });

  return { authority, list: () => issuers, refresh, know, isRetired, make };
}

/** Identifies a set of issuers: nothing changes but what an issuer signs for, and where its key is. */
const statesOf = (issuers: readonly Pick<Issuer, 'id' | 'purposes' | 'policy' | 'keyPlace'>[]): string =>
  issuers
    .map(({ id, purposes, policy, keyPlace }) =>
      [
        id,
        ...purposes,
        ...(policy ? [policy] : []),
        ...(keyPlace === 'offline' || keyPlace === 'token' ? [keyPlace] : []),
      ].join(' '),
    )
    .join(', ');
