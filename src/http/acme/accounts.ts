// Accounts of ACME clients: newAccount, the account resource, and the change of its key.
import type { AcmeAccount } from '../../domain/acme/account.ts';
import { ACME_PATHS } from '../../domain/acme/directory.ts';
import { AcmeProblem, unauthorized } from '../../domain/acme/problem.ts';
import type { AcmeAccountActs } from '../../usecases/acme/accounts.ts';
import type { AcmeDoor, AcmeRequest } from './door.ts';

export interface AccountServices {
  readonly accounts: AcmeAccountActs;
  readonly termsUrl: string | undefined;
}

export function accountResources(door: AcmeDoor, { accounts, termsUrl }: AccountServices): void {
  const urlOf = ({ id }: Pick<AcmeAccount, 'id'>): string => door.url(`${ACME_PATHS.account}/${id}`);
  const view = (account: AcmeAccount) => ({
    status: account.status,
    contact: account.contacts,
    ...(account.termsAgreedAt !== null && { termsOfServiceAgreed: true }),
    orders: `${urlOf(account)}/orders`,
  });

  door.byKey(ACME_PATHS.newAccount, async (request, reply) => {
    if (termsUrl !== undefined) reply.header('link', `<${termsUrl}>;rel="terms-of-service"`);
    const { bound, isNew } = await accounts.newAccount(request, request.requestId);
    reply.code(isNew ? 201 : 200).header('location', urlOf(bound.account));
    return view(bound.account);
  });

  door.byAccount(`${ACME_PATHS.account}/:id`, async (request, reply) => {
    requireOwn(request);
    reply.header('location', urlOf(request.account));
    return view(await accounts.change(request, request.requestId));
  });

  door.byAccount(ACME_PATHS.keyChange, async (request, reply) => {
    const changed = await accounts.changeKey(request, urlOf(request.account), request.requestId);
    if ('conflictsWith' in changed) {
      reply.header('location', urlOf({ id: changed.conflictsWith }));
      throw keyInUse();
    }
    reply.header('location', urlOf(changed));
    return view(changed);
  });
}

/** Of a resource below an account's URL. Says nothing about whether another account exists. */
export function requireOwn({ account, params }: Pick<AcmeRequest, 'account' | 'params'>): void {
  if (params.id === account.id) return;
  throw unauthorized('This URL is not that of the account that signed the request.', '该地址不属于签署请求的账户。');
}

const keyInUse = (): AcmeProblem =>
  new AcmeProblem('keyInUse', {
    en: 'The new key has an account already, whose URL is in Location. Make another key.',
    zh: '新密钥已有账户，其地址见 Location，请使用其他密钥。',
  });
