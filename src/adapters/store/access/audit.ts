import type { AuditEntry, AuditTrail } from '../../../domain/access/ports.ts';
import { preparedInsert } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';

const insert = preparedInsert('audit');

export const auditRow = ({ accountId, requestId, details, ...entry }: AuditEntry): Schema['audit'] => ({
  ...{ ...entry, account_id: accountId, request_id: requestId, details: JSON.stringify(details) },
});

export const auditIn = (db: Db): AuditTrail => ({
  async append(entry) {
    await insert(db, auditRow(entry));
  },

  async listOf(accountId, { after = '', limit }) {
    const rows = await db
      .selectFrom('audit')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('id', '>', after)
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map(({ account_id, request_id, details, ...entry }) => ({
      ...entry,
      accountId: account_id,
      requestId: request_id,
      details: JSON.parse(details),
    }));
  },
});
