// What operators ask for in the console: one list of routes, over the use cases of the command line (ADR 0067). Call in an
// operator scope, which admits roles and networks.
import type { Api } from '../front/api.ts';
import { type AccountServices, operatorAccounts } from './operator-accounts.ts';
import { type HealthServices, operatorHealth } from './operator-health.ts';
import { operatorQueues, type QueueServices } from './operator-queues.ts';
import { operatorSupport, type SupportServices } from './operator-support.ts';

export type OperatorServices = AccountServices & HealthServices & QueueServices & SupportServices;

export function operatorOperations(api: Api, services: OperatorServices): void {
  operatorAccounts(api, services);
  operatorHealth(api, services);
  operatorQueues(api, services);
  operatorSupport(api, services);
}
