// Opens the use cases of ACME orders over the tools of issuance, and their background work.
import { certIdOf, keyIdText } from '../adapters/ca/certificate-reader.ts';
import { csrNames } from '../adapters/ca/csr-names.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import type { Issuer } from '../domain/certificate/authority.ts';
import { MINUTE_MS } from '../kernel/durations.ts';
import type { AcmeFaults } from '../sandbox/acme-faults.ts';
import { type AcmeAuthorizations, acmeAuthorizations } from '../usecases/acme/answer-challenge.ts';
import { endExpiredOrders } from '../usecases/acme/end-acme-order.ts';
import { type FinalizeOrder, finalizeOrder } from '../usecases/acme/finalize-order.ts';
import { type PlaceAcmeOrder, placeAcmeOrder } from '../usecases/acme/place-acme-order.ts';
import { type RevokeByAcme, revokeByAcme } from '../usecases/acme/revoke-by-acme.ts';
import { type ShowAcmeOrders, showAcmeOrders } from '../usecases/acme/show-acme-orders.ts';
import type { AcmeOrderTools } from '../usecases/acme/tools.ts';
import { validateChallenge } from '../usecases/acme/validate-challenge.ts';
import type { Chore } from './background.ts';
import type { OpenIssuers } from './issuers.ts';

export interface AcmeOrderServices {
  readonly placeAcmeOrder: PlaceAcmeOrder;
  readonly finalizeOrder: FinalizeOrder;
  readonly acmeAuthorizations: AcmeAuthorizations;
  readonly showAcmeOrders: ShowAcmeOrders;
  readonly revokeByAcme: RevokeByAcme;
  /** Validate challenges that this process did not, and end orders whose time is over. */
  readonly acmeChores: readonly Chore[];
}

const VALIDATE_MS = 1_000;
const END_MS = MINUTE_MS / 6;
/** Twice as many bits as RFC 8555 asks for. */
const TOKEN_BYTES = 32;

type Made = 'reusesProofs' | 'validate' | 'newToken' | 'csrNames' | 'issuersWithKey';

export function openAcmeOrders(
  parts: Omit<AcmeOrderTools, Made>,
  issuers: Pick<OpenIssuers, 'list' | 'refresh'>,
  faults?: AcmeFaults,
): AcmeOrderServices {
  const tools: AcmeOrderTools = {
    ...parts,
    validate: validateChallenge({ ...parts, disturb: faults?.disturb }),
    reusesProofs: !faults?.reusesNoProofs,
    newToken: () => Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url'),
    csrNames,
    issuersWithKey: issuersWithKey(issuers),
  };
  const show = showAcmeOrders(tools);
  const authorizations = acmeAuthorizations(tools);
  return {
    placeAcmeOrder: placeAcmeOrder(tools),
    finalizeOrder: finalizeOrder(tools, show),
    acmeAuthorizations: authorizations,
    showAcmeOrders: faults?.show(show) ?? show,
    revokeByAcme: revokeByAcme({ ...tools, readCertId: certIdOf }),
    acmeChores: [
      { name: 'validate_acme', everyMs: VALIDATE_MS, run: authorizations.validateDue },
      { name: 'end_acme_orders', everyMs: END_MS, run: (stopping) => endExpiredOrders(tools, stopping) },
    ],
  };
}

/** By key identifier; an imported authority may be there twice. Indexed again when the issuers change. */
function issuersWithKey({ list, refresh }: Pick<OpenIssuers, 'list' | 'refresh'>): AcmeOrderTools['issuersWithKey'] {
  let indexed: readonly Issuer[] | undefined;
  let byKey = new Map<string | undefined, Issuer[]>();
  const idsOf = (keyId: string): string[] => {
    if (indexed !== list()) {
      indexed = list();
      byKey = Map.groupBy(indexed, ({ certificate }) => keyIdText(certificate));
    }
    return (byKey.get(keyId) ?? []).map(({ id }) => id);
  };
  return async (keyId) => {
    // Another process may just have made it.
    if (idsOf(keyId).length === 0) await refresh();
    return idsOf(keyId);
  };
}
