// The part of the application that revokes, and shows the world what is revoked: lists, OCSP, and the chores that keep
// both going.

import { type ListPublisher, listPublisher } from '../adapters/ca/status/list-publisher.ts';
import { type AnswerOcsp, answerOcsp } from '../adapters/ca/status/ocsp.ts';
import { ocspResponders } from '../adapters/ca/status/ocsp-responders.ts';
import { statusSigners } from '../adapters/ca/status/signers.ts';
import type { Catalog } from '../domain/catalog/products.ts';
import type { Issuer, IssuerKeyType } from '../domain/certificate/authority.ts';
import type { Clock } from '../domain/clock.ts';
import type { PublishLists } from '../domain/revocation/ports.ts';
import { keyedMutex } from '../kernel/keyed-mutex.ts';
import { type ChangeRevocation, changeRevocation } from '../usecases/revocation/change-revocation.ts';
import { type RevokeCertificate, revokeCertificate } from '../usecases/revocation/revoke-certificate.ts';
import {
  type CompromiseKey,
  compromiseKey,
  type VoidedSerials,
  voidedSerials,
} from '../usecases/revocation/revoke-key.ts';
import { runDueRevocations } from '../usecases/revocation/run-due-revocations.ts';
import type { App } from './app.ts';
import { type Chore, logUnexpected } from './background.ts';

export interface RevocationServices {
  readonly revoke: RevokeCertificate;
  readonly changeRevocation: ChangeRevocation;
  readonly compromiseKey: CompromiseKey;
  readonly voidedSerials: VoidedSerials;
  readonly lists: ListPublisher;
  readonly answerOcsp: AnswerOcsp;
  /** Carries out what is due, publishes what is not published, renews what is old. */
  readonly revocationChores: readonly Chore[];
}

export interface OpenRevocation extends RevocationServices {
  readonly publishLists: PublishLists;
}

/** How late a scheduled revocation may be, and a list that whoever should have published it left behind. */
const DUE_MS = 2_000;
const LISTS_MS = 5_000;
const RESPONDERS_MS = 60_000;

export function openRevocation(
  { store, newId, log }: Pick<App, 'store' | 'newId' | 'log'>,
  products: Catalog,
  issuers: () => readonly Issuer[],
  keyTypes: readonly IssuerKeyType[],
  now: Clock,
): OpenRevocation {
  const onError = logUnexpected(log);
  const signers = statusSigners(issuers, keyTypes);
  const withLock = keyedMutex();
  const lists = listPublisher({ store, now, signers, withLock });
  const publishLists: PublishLists = (refs) => lists.publish(refs).catch(onError);
  const tools = { store, now, newId, products, publishLists };
  const responders = ocspResponders({ store, now, withLock, onError });
  return {
    publishLists,
    lists,
    revoke: revokeCertificate(tools),
    changeRevocation: changeRevocation(tools),
    compromiseKey: compromiseKey(tools),
    voidedSerials: voidedSerials(tools),
    answerOcsp: answerOcsp({ store, now, signers, responders }),
    revocationChores: [
      { everyMs: DUE_MS, run: () => runDueRevocations(tools) },
      { everyMs: LISTS_MS, run: () => lists.publishDue() },
      { everyMs: RESPONDERS_MS, run: () => responders.renewDue(signers().values()) },
    ],
  };
}
