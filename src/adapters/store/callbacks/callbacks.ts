// Callback settings, one row per account. All secrets are sealed, and bound to the account and to their column, so
// that neither opens in the place of another.

import { type CallbackAction, type CallbackSettings, isCallbackAction } from '../../../domain/callbacks/callback.ts';
import type { Callbacks } from '../../../domain/callbacks/ports.ts';
import type { AccountId } from '../../../domain/ids.ts';
import { Secret } from '../../../domain/secret.ts';
import type { Sealer } from '../../seal/seal.ts';
import { listFrom, listText } from '../engine/columns.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db, Schema } from '../engine/schema.ts';

/** Secrets that sign besides the current one, in one sealed column. */
const MAX_FORMER = 3;
const BETWEEN = ' ';

type SealedColumn = 'sealed_access_key' | 'sealed_signing_secret' | 'sealed_former_secret';
const bindingOf = (accountId: AccountId, column: SealedColumn): string => `callback_settings/${accountId}/${column}`;

export const callbacksIn = (db: Db, sealer: Sealer, engine: Pick<Engine, 'locksRows'>): Callbacks => {
  const opened = (row: Schema['callback_settings'], column: SealedColumn) =>
    new Secret(sealer.open(row[column] ?? '', bindingOf(row.account_id, column)));
  const sealed = (secret: Secret, accountId: AccountId, column: SealedColumn) =>
    sealer.seal(secret.reveal(), bindingOf(accountId, column));
  /** What is under an older seal key is sealed anew when it is read, as every sealed value is. */
  async function renew(row: Schema['callback_settings']): Promise<void> {
    const values = [row.sealed_access_key, row.sealed_signing_secret, row.sealed_former_secret];
    if (!values.some((value) => value !== null && sealer.isStale(value))) return;
    const anew = (column: SealedColumn) => sealed(opened(row, column), row.account_id, column);
    await db
      .updateTable('callback_settings')
      .set({
        sealed_access_key: anew('sealed_access_key'),
        sealed_signing_secret: anew('sealed_signing_secret'),
        sealed_former_secret: row.sealed_former_secret === null ? null : anew('sealed_former_secret'),
      })
      .where('account_id', '=', row.account_id)
      .where('sealed_access_key', '=', row.sealed_access_key)
      .where('sealed_signing_secret', '=', row.sealed_signing_secret)
      .execute();
  }

  const formerIn = (row: Schema['callback_settings']) =>
    row.sealed_former_secret === null
      ? null
      : {
          secrets: opened(row, 'sealed_former_secret')
            .reveal()
            .split(BETWEEN)
            .map((one) => new Secret(one)),
          until: row.former_until ?? 0,
        };

  const owned = (accountId: AccountId) =>
    db.selectFrom('callback_settings').selectAll().where('account_id', '=', accountId);

  async function settingsFrom(row: Schema['callback_settings']): Promise<CallbackSettings> {
    await renew(row);
    return {
      accountId: row.account_id,
      url: row.url,
      accessKey: opened(row, 'sealed_access_key'),
      signingSecret: opened(row, 'sealed_signing_secret'),
      former: formerIn(row),
      isDisabled: row.disabled === 1,
      enabledActions: row.enabled_actions === null ? null : actionsFrom(row.enabled_actions),
      updatedAt: row.updated_at,
    };
  }

  return {
    async find(accountId) {
      const row = await owned(accountId).executeTakeFirst();
      return row && (await settingsFrom(row));
    },

    async findForUpdate(accountId) {
      const query = owned(accountId);
      const row = await (engine.locksRows ? query.forUpdate() : query).executeTakeFirst();
      return row && (await settingsFrom(row));
    },

    async save(settings: CallbackSettings) {
      const { accountId, url, accessKey, signingSecret, isDisabled, enabledActions, updatedAt } = settings;
      const changeable = {
        url,
        sealed_access_key: sealed(accessKey, accountId, 'sealed_access_key'),
        disabled: isDisabled ? 1 : 0,
        enabled_actions: enabledActions && listText(enabledActions),
        updated_at: updatedAt,
      };
      const row = await db
        .insertInto('callback_settings')
        .values({
          account_id: accountId,
          sealed_signing_secret: sealed(signingSecret, accountId, 'sealed_signing_secret'),
          ...changeable,
        })
        .onConflict((conflict) => conflict.column('account_id').doUpdateSet(changeable))
        .returningAll()
        .executeTakeFirstOrThrow();
      return { ...settings, signingSecret: opened(row, 'sealed_signing_secret'), former: formerIn(row) };
    },

    async rotateSecret(accountId, secret, { now, formerUntil }) {
      const query = owned(accountId);
      const before = await (engine.locksRows ? query.forUpdate() : query).executeTakeFirst();
      if (!before) return undefined;
      // A second rotation within the overlap keeps its promise to the first one's secret.
      const known = formerIn(before);
      const earlier = known && known.until > now ? known.secrets : [];
      const secrets = [opened(before, 'sealed_signing_secret'), ...earlier].slice(0, MAX_FORMER);
      const former = new Secret(secrets.map((one) => one.reveal()).join(BETWEEN));
      const row = await db
        .updateTable('callback_settings')
        .set({
          sealed_signing_secret: sealed(secret, accountId, 'sealed_signing_secret'),
          sealed_former_secret: sealed(former, accountId, 'sealed_former_secret'),
          former_until: formerUntil,
          updated_at: now,
        })
        .where('account_id', '=', accountId)
        .returningAll()
        .executeTakeFirstOrThrow();
      return await settingsFrom(row);
    },

    async delete(accountId) {
      const row = await db
        .deleteFrom('callback_settings')
        .where('account_id', '=', accountId)
        .returning('account_id')
        .executeTakeFirst();
      return row !== undefined;
    },
  };
};

/** An action that a later version saved, and this one does not know, is not called back. */
const actionsFrom = (text: string): CallbackAction[] => listFrom<string>(text).filter(isCallbackAction);
