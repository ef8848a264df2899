// Opens revocation: the use cases, CRLs, OCSP, and the background chores that keep both up to date.

import type { TokenKeys } from '../adapters/ca/issuer-key.ts';
import { type CrlPublisher, crlPublisher } from '../adapters/ca/status/crl-publisher.ts';
import { type AnswerOcsp, answerOcsp } from '../adapters/ca/status/ocsp.ts';
import { ocspResponders } from '../adapters/ca/status/ocsp-responders.ts';
import { servedNumbers } from '../adapters/ca/status/served-numbers.ts';
import { statusSigners } from '../adapters/ca/status/signers.ts';
import type { Catalog } from '../domain/catalog/products.ts';
import type { IssuerKeyType } from '../domain/certificate/authority.ts';
import type { Revocation } from '../domain/certificate/certificate.ts';
import type { Clock } from '../domain/clock.ts';
import type { CertificateRef, CrlHead, OcspResponder, PublishCrls } from '../domain/revocation/ports.ts';
import { keyedMutex } from '../kernel/concurrency.ts';
import { type ChangeRevocation, changeRevocation } from '../usecases/revocation/change-revocation.ts';
import { type InterruptedIssuances, interruptedIssuances } from '../usecases/revocation/interrupted-issuances.ts';
import type { RevokeCertificate } from '../usecases/revocation/revoke-certificate.ts';
import { type RevokeKey, revokeKey, revokeOnRequest } from '../usecases/revocation/revoke-key.ts';
import { runDueRevocations } from '../usecases/revocation/run-due-revocations.ts';
import type { App } from './app.ts';
import { type Chore, logUnexpected } from './background.ts';
import type { OpenIssuers } from './issuers.ts';

export interface RevocationServices {
  readonly revoke: RevokeCertificate;
  readonly changeRevocation: ChangeRevocation;
  readonly revokeKey: RevokeKey;
  readonly interrupted: InterruptedIssuances;
  readonly crls: CrlPublisher;
  readonly answerOcsp: AnswerOcsp;
  /** Run due revocations, publish CRLs, renew OCSP responders. */
  readonly revocationChores: readonly Chore[];
}

interface OpenRevocation extends RevocationServices {
  closeFiles(): void;
  readonly publishCrls: PublishCrls;
}

/** How late a scheduled revocation may be, and a CRL whose publisher crashed. */
const DUE_MS = 2_000;
const CRLS_MS = 5_000;
const RESPONDERS_MS = 60_000;

interface RevocationSources {
  readonly products: Catalog;
  readonly issuers: Pick<OpenIssuers, 'list' | 'know' | 'refresh'>;
  readonly keyTypes: readonly IssuerKeyType[];
  readonly tokens: TokenKeys;
  readonly now: Clock;
  readonly dataDir: string;
}

export function openRevocation(
  { store, newId, log, metrics }: Pick<App, 'store' | 'newId' | 'log' | 'metrics'>,
  { products, issuers, keyTypes, tokens, now, dataDir }: RevocationSources,
): OpenRevocation {
  const onError = logUnexpected(log, 'publish_crls');
  function onPublished({ issuerId, shard, number, entries }: CrlHead, changes: number): void {
    metrics.crlPublished();
    log({ event: 'crl_published', issuer_id: issuerId, shard, number, entries, changes });
  }
  function onMade({ issuerId, serial, notAfter }: OcspResponder): void {
    const not_after = new Date(notAfter).toISOString();
    log({ event: 'ocsp_responder_made', issuer_id: issuerId, serial_number: serial, not_after });
  }
  function onRevoked(
    { accountId, orderId, certificateId }: CertificateRef,
    { reason, cause, dueAt }: Revocation,
  ): void {
    metrics.revoked(reason);
    log({
      ...{ event: 'revocation', account_id: accountId, order_id: orderId, certificate_id: certificateId },
      ...{ reason, cause, late_ms: now() - dueAt },
    });
  }
  const signers = statusSigners(issuers.list, keyTypes, tokens);
  const withLock = keyedMutex();
  const served = servedNumbers(dataDir, (text) => log({ event: 'warning', text }));
  const crls = crlPublisher({ store, now, signers, know: issuers.know, withLock, served, onPublished });
  const publishCrls: PublishCrls = (refs) => crls.publish(refs).catch(onError);
  const tools = { store, now, newId, products, publishCrls };
  const responders = ocspResponders({ store, now, withLock, onError: logUnexpected(log, 'renew_responders'), onMade });
  // None happens early because the clock of one instance is ahead.
  const byShared = { ...tools, now: store.sharedNow };
  return {
    closeFiles: () => served.close(),
    publishCrls,
    crls,
    revoke: revokeOnRequest(tools),
    changeRevocation: changeRevocation(tools),
    revokeKey: revokeKey(tools),
    interrupted: interruptedIssuances(tools),
    answerOcsp: answerOcsp({ store, now, signers, refresh: issuers.refresh, responders }),
    revocationChores: [
      { name: 'revoke', everyMs: DUE_MS, run: () => runDueRevocations(byShared, onRevoked) },
      { name: 'publish_crls', everyMs: CRLS_MS, run: () => crls.publishDue() },
      { name: 'renew_responders', everyMs: RESPONDERS_MS, run: () => responders.renewDue(signers().values()) },
    ],
  };
}
