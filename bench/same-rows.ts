// What the service may not leave out of a reissue, without its rules: it asks for CAA, writes down what it is about to sign,
// and writes the rows of a reissue to the service's tables. No authentication, no policy, no idempotency, no certificate.
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { dnsLookups } from '../src/adapters/dns/lookups.ts';
import { newId, type Steps } from './bare-server.ts';

/** The names that CAA is asked for, of the orders that the bench places. */
const NAMES = ['www.example.com', 'example.com', 'com'];

export function askForCaa(nameServer: string): (orderId: string) => Promise<void> {
  const { caa } = dnsLookups([nameServer]);
  const { signal } = new AbortController();
  return async (accountId) => {
    const answers = await caa(NAMES, { accountId, signal });
    if (answers.some(({ kind }) => kind !== 'absent')) throw new Error('the name server has failed');
  };
}

/** With the service's settings. */
export function openStore(folder: string): DatabaseSync {
  const database = new DatabaseSync(join(folder, 'reseal.db'), { enableForeignKeyConstraints: true });
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 16384');
  database.exec('pragma secure_delete = fast; pragma temp_store = memory; pragma cache_size = -8192');
  return database;
}

type Values = Record<string, SQLInputValue>;

/** The last rows of an order, which its reissue writes once more. */
interface Last {
  readonly order: Values;
  readonly certificate: Values;
  readonly audit: Values;
  readonly event: Values;
  version: number;
  revision: number;
}

export function sameRows(database: DatabaseSync): Pick<Steps, 'writeDown' | 'finish'> {
  const orders = lastRows(database);
  const insert = {
    signing: inserter(database, 'signing'),
    certificate: inserter(database, 'certificate'),
    audit: inserter(database, 'audit'),
    event: inserter(database, 'outbox'),
  };
  const release = database.prepare('delete from signing where order_id = ?');
  const save = database.prepare(
    'update certificate_order set current_certificate_id = ?, revision = ? where id = ? and account_id = ? and revision = ?',
  );
  const lastOf = (orderId: string): Last => {
    const last = orders.get(orderId);
    if (!last) throw new Error(`there is no order ${orderId}`);
    return last;
  };
  return {
    writeDown({ orderId, certificateId, toBeSigned }) {
      const { certificate } = lastOf(orderId);
      const now = Date.now();
      insert.signing(certificate, {
        ...{ certificate_id: certificateId, to_be_signed: textOf(toBeSigned), serial: serialOf(certificateId) },
        ...{ key_reported: 0, prepared_at: now, lease_ends_at: now },
      });
    },
    finish({ orderId, certificateId, der }) {
      const last = lastOf(orderId);
      const now = Date.now();
      release.run(orderId);
      save.run(certificateId, last.revision + 1, orderId, last.order.account_id ?? null, last.revision);
      last.revision += 1;
      last.version += 1;
      insert.certificate(last.certificate, {
        ...{ id: certificateId, serial: serialOf(certificateId), der: textOf(der), version: last.version },
        ...{ issued_at: now, created_at: now },
      });
      insert.audit(last.audit, { id: newId(), at: now });
      insert.event(last.event, { id: newId(), certificate_id: certificateId, created_at: now, settled_at: now });
    },
  };
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const serialOf = (certificateId: string): string => Buffer.from(certificateId).toString('hex').slice(0, 32);

function lastRows(database: DatabaseSync): Map<string, Last> {
  const one = (text: string, value: SQLInputValue = null) => database.prepare(text).get(value) as Values;
  const orders = database.prepare('select * from certificate_order').all() as Values[];
  return new Map(
    orders.map((order) => [
      String(order.id),
      {
        order,
        certificate: one('select * from certificate where id = ?', order.current_certificate_id),
        audit: one('select * from audit where account_id = ? order by length(details) desc', order.account_id),
        event: one('select * from outbox where order_id = ?', order.id),
        version: 1,
        revision: Number(order.revision),
      },
    ]),
  );
}

/** Inserts a row with the values given, and those of another row in columns of the same name. */
function inserter(database: DatabaseSync, table: string): (like: Values, but: Values) => void {
  const columns = database.prepare(`select name from pragma_table_info('${table}')`).all() as { name: string }[];
  const names = columns.map(({ name }) => name);
  const insert = database.prepare(`insert into ${table} (${names}) values (${names.map(() => '?')})`);
  return (like, but) => void insert.run(...names.map((name) => but[name] ?? like[name] ?? null));
}
