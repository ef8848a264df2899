// The use cases behind the operators' routes of the console: those of the command line, over an open store.
import { describe } from '../adapters/ca/imported-issuer.ts';
import type { Clock } from '../domain/clock.ts';
import type { NewId } from '../domain/ids.ts';
import type { Store } from '../domain/store.ts';
import type { StoreFacts } from '../domain/support/ports.ts';
import type { OperatorServices } from '../http/console/operator.ts';
import { manageDeliveries } from '../usecases/callbacks/manage-deliveries.ts';
import { manageAuthorities } from '../usecases/issuance/manage-authorities.ts';
import { type Examine, listAttention } from '../usecases/support/examine.ts';
import { findAnything } from '../usecases/support/find-anything.ts';
import { listAllAccounts } from '../usecases/support/list-all-accounts.ts';
import { searchAudit } from '../usecases/support/search-audit.ts';
import { tellStoryOf } from '../usecases/support/tell-story.ts';

interface Watched {
  readonly facts: () => Promise<StoreFacts | undefined>;
  readonly examine: Examine;
}

/** Without those that act in the name of an operator, or need the other processes. */
export function operatorServices(
  { store, now, newId }: { readonly store: Store; readonly now: Clock; readonly newId: NewId },
  { facts, examine }: Watched,
): Omit<OperatorServices, 'accessAs' | 'operatorsAs' | 'history'> {
  const { overview } = manageAuthorities({ store, now, newId, describe });
  return {
    now,
    listAll: listAllAccounts(store),
    deliveries: manageDeliveries(store, now, newId),
    issuers: overview,
    attention: listAttention(examine, facts),
    examine,
    searchAudit: searchAudit(store),
    findAnything: findAnything(store),
    tellStoryOf: tellStoryOf(store),
  };
}
