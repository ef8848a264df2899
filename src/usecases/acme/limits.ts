// Rates of the ACME door, shared by all instances. They bound what a client in a loop costs, far above what renewals need;
// the quotas of the tenant hold besides.
import type { AcmeAccount } from '../../domain/acme/account.ts';
import { AcmeProblem } from '../../domain/acme/problem.ts';
import type { Rate } from '../../domain/rate.ts';
import type { Repositories } from '../../domain/store.ts';
import { MINUTE_MS, SECOND_MS } from '../../kernel/durations.ts';
import type { Localized } from '../../kernel/locale.ts';

/** 300 at once and one in ten seconds are 8,600 orders a day. */
const ORDERS_OF_ACCOUNT: Rate = { burst: 300, everyMs: 10 * SECOND_MS };
const ORDERS_OF_BINDING: Rate = { burst: 3_000, everyMs: SECOND_MS };
const ACCOUNTS_OF_BINDING: Rate = { burst: 50, everyMs: MINUTE_MS };

const LIMITS = {
  account: { en: 'orders of this ACME account', zh: '该 ACME 账户的订单' },
  binding: { en: 'orders under this external account binding', zh: '该外部账户绑定下的订单' },
  registrations: { en: 'new accounts under this external account binding', zh: '该外部账户绑定下的新账户' },
} as const satisfies Record<string, Localized>;

type Limited = Pick<Repositories, 'rateLimits' | 'sharedNow'>;

/** Counts a new order. Throws `rateLimited`; call in a transaction, so that a refusal takes no token of the other limit. */
export async function limitNewOrders(tx: Limited, { id, bindingId }: Pick<AcmeAccount, 'id' | 'bindingId'>) {
  await take(tx, `acme-order ${id}`, ORDERS_OF_ACCOUNT, LIMITS.account);
  await take(tx, `acme-binding-order ${bindingId}`, ORDERS_OF_BINDING, LIMITS.binding);
}

export const limitNewAccounts = (tx: Limited, bindingId: string): Promise<void> =>
  take(tx, `acme-account ${bindingId}`, ACCOUNTS_OF_BINDING, LIMITS.registrations);

async function take(tx: Limited, key: string, rate: Rate, { en, zh }: Localized): Promise<void> {
  const waitMs = await tx.rateLimits.take(key, rate, tx.sharedNow());
  if (waitMs === 0) return;
  const seconds = Math.ceil(waitMs / SECOND_MS);
  throw new AcmeProblem(
    'rateLimited',
    { en: `Too many ${en}. Try again in ${seconds} seconds.`, zh: `${zh}过多，请在 ${seconds} 秒后重试。` },
    { retryAfterSeconds: seconds },
  );
}
