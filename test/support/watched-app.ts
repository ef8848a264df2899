// The service with its tables visible, for tests of orders and reissues. It defines what a refusal is (equivalent in
// both languages, naming the field, no row changed), and when a reissue counts as answered or issued.
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

/** Disposed of when the test file ends. */
export async function startWatchedApp(environment: Environment = {}) {
  const app = await startApp(environment);
  after(() => app[Symbol.asyncDispose]());
  const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
  after(() => db.close());

  /** Every row that a reissue can write. */
  const rows = () => TABLES.map((table) => db.prepare(`select * from ${table} order by 1, 2, 3`).all());

  async function requireRefused(order: PlacedOrder, json: unknown, expected: Expected, query = '', what = short(json)) {
    const before = rows();
    const english = await reissue(app, order, json, query);
    const chinese = await reissue(app, order, json, query, { 'accept-language': 'zh-CN' });
    for (const answer of [english, chinese]) requireError(answer, expected, what);
    assert.match(chinese.body.message, HAN);
    // The message may repeat input only verbatim and in quotes.
    const { message } = english.body;
    assert.doesNotMatch(HAN.test(JSON.stringify(json)) ? message.replace(/"[^"]*"/g, '') : message, HAN);
    assert.deepEqual(rows(), before, 'a refusal writes nothing');
    return english.body;
  }

  /** Refused because of the value or absence of one field. */
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

  /** Returns the certificate as the API shows it. */
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
