// Operators of the console, as the command line manages them: create, list, disable, a link to sign in with, and sessions.
import { consoleOperatorActor } from '../../domain/access/credential.ts';
import type { Clock } from '../../domain/clock.ts';
import {
  LINK_MS,
  type Operator,
  type OperatorRole,
  operatorName,
  type SessionOwner,
  type SessionRecord,
} from '../../domain/console/session.ts';
import { invalid, Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import { Secret } from '../../domain/secret.ts';
import type { Store } from '../../domain/store.ts';
import { auditLog, byOperator, type OperatorCall } from '../access/audit.ts';
import { hashOfSecret } from '../access/authenticate-caller.ts';
import { TOKEN_BYTES } from './sessions.ts';

interface OperatorTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** People who run one service. */
const MAX_OPERATORS = 1_000;
/** Per operator. A further one voids the oldest. */
const MAX_LINKS = 5;
const MAX_LISTED = 1_000;

export type ManageOperators = ReturnType<typeof manageOperators>;

/** `call` says which operator acts; the command line's own user if it is left out. */
export function manageOperators({ store, now, newId, randomBytes }: OperatorTools, call?: OperatorCall) {
  const audit = auditLog({ now, newId });
  const by = (accountId: AccountId | null) => byOperator(accountId, call);
  return {
    create: (text: string, role: OperatorRole): Promise<Operator> =>
      store.transaction(async (tx) => {
        const operator = { name: operatorName(text), role, createdAt: now(), disabledAt: null };
        if ((await tx.operators.count()) >= MAX_OPERATORS) throw tooMany();
        if (!(await tx.operators.insert(operator))) throw taken(operator.name);
        await audit(tx, by(null), 'operator:created', operator.name, { role });
        return operator;
      }),

    list: (): Promise<Operator[]> => store.operators.list(),

    /** Its sessions and links end. The name is not given again: the audit must mean one person by it. */
    disable: (name: string): Promise<Operator> =>
      store.transaction(async (tx) => {
        const operator = await tx.operators.disable(name, now());
        if (!operator) throw new Refusal('operator_not_found');
        await audit(tx, by(null), 'operator:disabled', name);
        return operator;
      }),

    /** The token of a link that signs in once. Print it to a terminal only. */
    makeLink: (name: string): Promise<{ readonly token: Secret; readonly expiresAt: number }> =>
      store.transaction(async (tx) => {
        const operator = await tx.operators.find(name);
        if (!operator) throw new Refusal('operator_not_found');
        if (operator.disabledAt !== null) throw disabled(name);
        const token = new Secret(Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url'));
        const createdAt = tx.sharedNow();
        const expiresAt = createdAt + LINK_MS;
        const tokenHash = hashOfSecret(token.reveal());
        await tx.loginLinks.insert({ tokenHash, operatorName: name, createdAt, expiresAt }, MAX_LINKS);
        await audit(tx, by(null), 'console:link_made', name, { expires_at: expiresAt });
        return { token, expiresAt };
      }),

    /** Live ones, the newest first. */
    listSessions: (): Promise<(SessionRecord & { readonly owner: SessionOwner })[]> =>
      store.sessions.list(store.sharedNow(), MAX_LISTED),

    endSession: (id: string): Promise<void> =>
      store.transaction(async (tx) => {
        const owner = await tx.sessions.delete(id);
        if (!owner) throw new Refusal('session_not_found');
        const credential = 'keyId' in owner ? await tx.credentials.find(owner.keyId) : undefined;
        const details = { of: 'keyId' in owner ? owner.keyId : consoleOperatorActor(owner.operatorName) };
        await audit(tx, by(credential?.accountId ?? null), 'console:session_ended', id, details);
      }),
  };
}

const taken = (name: string): Refusal =>
  invalid(
    'name',
    `There is an operator ${name}, or was one: names are not given again. Choose another.`,
    `操作员名称 ${name} 已被使用，且不会重复分配，请另选名称。`,
  );

const tooMany = (): Refusal =>
  invalid('name', `There are ${MAX_OPERATORS} operators, as many as may be.`, `操作员数量已达上限 ${MAX_OPERATORS}。`);

const disabled = (name: string): Refusal =>
  invalid('operator', `The operator ${name} is disabled. Create another.`, `操作员 ${name} 已停用，请另行创建。`);
