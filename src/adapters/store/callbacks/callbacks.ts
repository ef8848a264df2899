// Callback settings, one row per account. Secrets are sealed, and bound to account and column, so that a sealed value
// copied elsewhere does not open.

import { type CallbackAction, type CallbackSettings, isCallbackAction } from '../../../domain/callbacks/callback.ts';
import type { Callbacks } from '../../../domain/callbacks/ports.ts';
import type { AccountId } from '../../../domain/ids.ts';
import { Secret } from '../../../domain/secret.ts';
import type { Sealer } from '../../seal/seal.ts';
import { listFrom, listText } from '../engine/columns.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db, Schema } from '../engine/schema.ts';

/** Former secrets that still sign, kept in one sealed column. */
const MAX_FORMER = 3;
const SEPARATOR = ' ';

type SealedColumn = 'sealed_access_key' | 'sealed_signing_secret' | 'sealed_former_secret';
const bindingOf = (accountId: AccountId, column: SealedColumn): string => `callback_settings/${accountId}/${column}`;

export const callbacksIn = (db: Db, sealer: Sealer, engine: Pick<Engine, 'locksRows'>): Callbacks => {
  const open = (row: Schema['callback_settings'], column: SealedColumn) =>
    new Secret(sealer.open(row[column] ?? '', bindingOf(row.account_id, column)));
  const seal = (secret: Secret, accountId: AccountId, column: SealedColumn) =>
    sealer.seal(secret.reveal(), bindingOf(accountId, column));
  /** Reseals values under an older seal key when they are read, as everywhere. */
  async function resealStale(row: Schema['callback_settings']): Promise<void> {
    const values = [row.sealed_access_key, row.sealed_signing_secret, row.sealed_former_secret];
    if (!values.some((value) => value !== null && sealer.isStale(value))) return;
    const reseal = (column: SealedColumn) => seal(open(row, column), row.account_id, column);
    await db
      .updateTable('callback_settings')
      .set({
        sealed_access_key: reseal('sealed_access_key'),
        sealed_signing_secret: reseal('sealed_signing_secret'),
        sealed_former_secret: row.sealed_former_secret === null ? null : reseal('sealed_former_secret'),
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
          secrets: open(row, 'sealed_former_secret')
            .reveal()
            .split(SEPARATOR)
            .map((one) => new Secret(one)),
          until: row.former_until ?? 0,
        };

  const find = (accountId: AccountId) =>
    db.selectFrom('callback_settings').selectAll().where('account_id', '=', accountId);
  const findLocked = (accountId: AccountId) =>
    (engine.locksRows ? find(accountId).forUpdate() : find(accountId)).executeTakeFirst();

  async function settingsFrom(row: Schema['callback_settings']): Promise<CallbackSettings> {
    await resealStale(row);
    return {
      accountId: row.account_id,
      url: row.url,
      accessKey: open(row, 'sealed_access_key'),
      signingSecret: open(row, 'sealed_signing_secret'),
      former: formerIn(row),
      isDisabled: row.disabled === 1,
      enabledActions: row.enabled_actions === null ? null : actionsFrom(row.enabled_actions),
      updatedAt: row.updated_at,
    };
  }

  return {
    async find(accountId) {
      const row = await find(accountId).executeTakeFirst();
      return row && (await settingsFrom(row));
    },

    async findForUpdate(accountId) {
      const row = await findLocked(accountId);
      return row && (await settingsFrom(row));
    },

    async save(settings: CallbackSettings) {
      const { accountId, url, accessKey, signingSecret, isDisabled, enabledActions, updatedAt } = settings;
      const changeable = {
        url,
        sealed_access_key: seal(accessKey, accountId, 'sealed_access_key'),
        disabled: isDisabled ? 1 : 0,
        enabled_actions: enabledActions && listText(enabledActions),
        updated_at: updatedAt,
      };
      const row = await db
        .insertInto('callback_settings')
        .values({
          account_id: accountId,
          sealed_signing_secret: seal(signingSecret, accountId, 'sealed_signing_secret'),
          ...changeable,
        })
        .onConflict((conflict) => conflict.column('account_id').doUpdateSet(changeable))
        .returningAll()
        .executeTakeFirstOrThrow();
      return { ...settings, signingSecret: open(row, 'sealed_signing_secret'), former: formerIn(row) };
    },

    async rotateSecret(accountId, secret, { now, formerUntil }) {
      const before = await findLocked(accountId);
      if (!before) return undefined;
      // A second rotation within the overlap must not end the overlap of the first.
      const current = formerIn(before);
      const earlier = current && current.until > now ? current.secrets : [];
      const secrets = [open(before, 'sealed_signing_secret'), ...earlier].slice(0, MAX_FORMER);
      const former = new Secret(secrets.map((one) => one.reveal()).join(SEPARATOR));
      const row = await db
        .updateTable('callback_settings')
        .set({
          sealed_signing_secret: seal(secret, accountId, 'sealed_signing_secret'),
          sealed_former_secret: seal(former, accountId, 'sealed_former_secret'),
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

/** Drops actions unknown to this version, which a later one may have saved. */
const actionsFrom = (text: string): CallbackAction[] => listFrom<string>(text).filter(isCallbackAction);
