// Repository of what external linters said about serial numbers.
import type { LintFinding, LintResult, LintResults, LintVerdict } from '../../../domain/issuance/lint.ts';
import { listFrom, listText } from '../engine/columns.ts';
import type { Db, Schema } from '../engine/schema.ts';

type Row = Schema['lint_result'];

const rowOf = ({ serial, certificateId, orderId, accountId, at, verdict }: LintResult): Row => ({
  ...{ serial, certificate_id: certificateId, order_id: orderId, account_id: accountId, at, verdict: verdict.kind },
  linters: listText(verdict.linters),
  report: JSON.stringify(verdict.kind === 'failed' ? { why: verdict.why } : { findings: verdict.findings }),
});

const resultFrom = (row: Row): LintResult => ({
  ...{ serial: row.serial, certificateId: row.certificate_id, orderId: row.order_id, accountId: row.account_id },
  ...{ at: row.at, verdict: verdictFrom(row) },
});

function verdictFrom({ verdict: kind, linters: names, report }: Row): LintVerdict {
  const linters = listFrom<string>(names);
  const { why = '', findings = [] }: { why?: string; findings?: LintFinding[] } = JSON.parse(report);
  return kind === 'failed' ? { kind, linters, why } : { kind, linters, findings };
}

export const lintResultsIn = (db: Db): LintResults => ({
  async insert(result) {
    await db.insertInto('lint_result').values(rowOf(result)).execute();
  },

  async listRefused(limit) {
    const rows = await db
      .selectFrom('lint_result')
      .selectAll()
      .where('verdict', '<>', 'passed')
      .orderBy('at', 'desc')
      .orderBy('serial', 'desc')
      .limit(limit)
      .execute();
    return rows.map(resultFrom);
  },

  async ofSerial(serial) {
    const row = await db.selectFrom('lint_result').selectAll().where('serial', '=', serial).executeTakeFirst();
    return row && resultFrom(row);
  },

  async deleteBefore(before, limit) {
    const old = db.selectFrom('lint_result').select('serial').where('at', '<', before).orderBy('at').limit(limit);
    const rows = await db.deleteFrom('lint_result').where('serial', 'in', old).returning('serial').execute();
    return rows.length;
  },
});
