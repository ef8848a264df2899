// The service with its tables in view, for tests of orders and reissues. It says what a refusal is (the same in both
// languages, naming the field, and no row has changed) and what it means that a reissue was answered, or issued.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import type { Environment } from '../../src/config/config.ts';
import { type Answer, startApp } from './app.ts';
import { certificate, type PlacedOrder, reissue } from './orders.ts';

export const HAN = /\p{Script=Han}/u;
export const DRY = '?dry_run=true';

const TABLES = [
  ...['certificate_order', 'certificate', 'revocation', 'outbox', 'idempotency_key', 'audit'],
  'domain_authorization',
];

export type Expected = readonly [status: number, code: string, field?: string | undefined];

export const short = (value: unknown): string => JSON.stringify(value)?.slice(0, 200) ?? 'undefined';

export function requireError(answer: Answer, [status, code, field]: Expected, what = ''): void {
  const found = [answer.status, answer.body?.code, answer.body?.field];
  assert.deepEqual(found, [status, code, field], `${what} ${answer.text}`);
}

/** It ends with the test file. */
export async function startWatchedApp(environment: Environment = {}) {
  const app = await startApp(environment);
  after(() => app[Symbol.asyncDispose]());
  const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
  after(() => db.close());

  /** Every row that a reissue could have written. */
  const rows = () => TABLES.map((table) => db.prepare(`select * from ${table} order by 1, 2, 3`).all());

  async function requireRefused(order: PlacedOrder, json: unknown, expected: Expected, query = '', what = short(json)) {
    const before = rows();
    const english = await reissue(app, order, json, query);
    const chinese = await reissue(app, order, json, query, { 'accept-language': 'zh-CN' });
    for (const answer of [english, chinese]) requireError(answer, expected, what);
    assert.match(chinese.body.message, HAN);
    // Only what was sent may be repeated as it is, and then in quotes.
    const { message } = english.body;
    assert.doesNotMatch(HAN.test(JSON.stringify(json)) ? message.replace(/"[^"]*"/g, '') : message, HAN);
    assert.deepEqual(rows(), before, 'a refusal writes nothing');
    return english.body;
  }

  /** Refused for what one field says, or lacks. */
  const requireBad = (
    order: PlacedOrder,
    json: unknown,
    field: string | undefined,
    code = 'invalid_parameters',
    what?: string,
  ) => requireRefused(order, json, [400, code, field], '', what);

  async function requireAnswered(order: PlacedOrder, json: unknown, headers = {}, to = app): Promise<string> {
    return idIn(await reissue(to, order, json, '', headers), short(json));
  }

  /** Answers with the certificate, as it is shown. */
  async function requireIssued(order: PlacedOrder, json: unknown, what = short(json)) {
    const found = await certificate(app, order, idIn(await reissue(app, order, json), what));
    assert.equal(found.status, 'issued', what);
    return found;
  }

  return { app, db, rows, requireRefused, requireBad, requireAnswered, requireIssued };
}

function idIn(answer: Answer, what: string): string {
  assert.equal(answer.status, 200, `${what} ${answer.text}`);
  return answer.body.data.certificate.id;
}
