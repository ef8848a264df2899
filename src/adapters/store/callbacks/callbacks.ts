// Callback settings, one row per account. Secrets are sealed, and bound to account and column, so that a sealed value
// copied elsewhere does not open.

import { sql } from 'kysely';
import { type CallbackAction, type CallbackSettings, isCallbackAction } from '../../../domain/callbacks/callback.ts';
import type { Callbacks } from '../../../domain/callbacks/ports.ts';
import type { AccountId } from '../../../domain/ids.ts';
import { Secret } from '../../../domain/secret.ts';
import type { Sealed, Sealer } from '../../seal/seal.ts';
import { listFrom, listText } from '../engine/columns.ts';
import { type Engine, perEngine } from '../engine/engine.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { SEALED } from '../engine/sealed.ts';

/** Former secrets that still sign, kept in one sealed column. */
const MAX_FORMER = 3;
const SEPARATOR = ' ';

const BINDINGS = SEALED.callback_settings.columns;
type SealedColumn = keyof typeof BINDINGS;

const settingsOf = (db: Db, { accountId }: { accountId: AccountId }) =>
  db.selectFrom('callback_settings').selectAll().where('account_id', '=', accountId);
const select = prepared(settingsOf);
const selectAll = perEngine(({ json }) =>
  prepared((db, { accountIds }: { accountIds: string }) =>
    db
      .selectFrom('callback_settings')
      .selectAll()
      .where(sql<boolean>`account_id ${json.among(accountIds)}`),
  ),
);

/**
 * Opened values, because every delivery needs them: by what is stored, so a change is seen at once. A process that can open
 * a value gives nothing away by remembering it.
 */
const opened = new WeakMap<Sealer, Map<string, Secret>>();
const MAX_OPENED = 2_000;

function openedBy(sealer: Sealer, sealed: Sealed, binding: string): Secret {
  const known = opened.get(sealer) ?? new Map<string, Secret>();
  opened.set(sealer, known);
  const key = `${sealed} ${binding}`;
  const secret = known.get(key) ?? new Secret(sealer.open(sealed, binding));
  if (known.size >= MAX_OPENED) known.clear();
  known.set(key, secret);
  return secret;
}

export const callbacksIn = (db: Db, sealer: Sealer, engine: Engine): Callbacks => {
  const open = (sealed: Sealed, accountId: AccountId, column: SealedColumn) =>
    openedBy(sealer, sealed, BINDINGS[column](accountId));
  const seal = (secret: Secret, accountId: AccountId, column: SealedColumn) =>
    sealer.seal(secret.reveal(), BINDINGS[column](accountId));
  const signingSecretIn = (row: Schema['callback_settings']) =>
    open(row.sealed_signing_secret, row.account_id, 'sealed_signing_secret');

  const formerIn = (row: Schema['callback_settings']) =>
    row.sealed_former_secret === null
      ? null
      : {
          secrets: open(row.sealed_former_secret, row.account_id, 'sealed_former_secret')
            .reveal()
            .split(SEPARATOR)
            .map((one) => new Secret(one)),
          until: row.former_until ?? 0,
        };

  const find = (accountId: AccountId) => settingsOf(db, { accountId });
  const findLocked = (accountId: AccountId) =>
    (engine.locksRows ? find(accountId).forUpdate() : find(accountId)).executeTakeFirst();

  const settingsFrom = (row: Schema['callback_settings']): CallbackSettings => ({
    accountId: row.account_id,
    url: row.url,
    accessKey: open(row.sealed_access_key, row.account_id, 'sealed_access_key'),
    signingSecret: signingSecretIn(row),
    former: formerIn(row),
    isDisabled: row.disabled === 1,
    enabledActions: row.enabled_actions === null ? null : actionsFrom(row.enabled_actions),
    updatedAt: row.updated_at,
  });

  return {
    async find(accountId) {
      const [row] = await select(db, { accountId });
      return row && settingsFrom(row);
    },

    async findAll(accountIds) {
      return (await selectAll(engine)(db, { accountIds: listText(accountIds) })).map(settingsFrom);
    },

    async findForUpdate(accountId) {
      const row = await findLocked(accountId);
      return row && settingsFrom(row);
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
      return { ...settings, signingSecret: signingSecretIn(row), former: formerIn(row) };
    },

    async rotateSecret(accountId, secret, { now, formerUntil }) {
      const before = await findLocked(accountId);
      if (!before) return undefined;
      // A second rotation within the overlap must not end the overlap of the first.
      const current = formerIn(before);
      const earlier = current && current.until > now ? current.secrets : [];
      const secrets = [signingSecretIn(before), ...earlier].slice(0, MAX_FORMER);
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
      return settingsFrom(row);
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
