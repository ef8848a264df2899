// A server without rules that does for a reissue what the service may not leave out: it asks for CAA, writes down what it is
// about to sign, and writes the service's own rows, to its own tables, each in a commit that the requests of a moment share. No
// authentication, no policy, no idempotency, no certificate. What a service costs beyond this is the cost of its rules.
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { dnsLookups } from '../src/adapters/dns/lookups.ts';
import { newId, serveBare } from './bare-server.ts';

/** The names that CAA is asked for, of the orders that the bench places. */
const NAMES = ['www.example.com', 'example.com', 'com'];

type Values = Record<string, SQLInputValue>;

/** What an order's reissue writes: its last rows, once more. */
interface Last {
  readonly order: Values;
  readonly certificate: Values;
  readonly audit: Values;
  readonly event: Values;
  version: number;
  revision: number;
}

async function serveSameRows(folder: string, server: string): Promise<string> {
  const database = new DatabaseSync(join(folder, 'reseal.db'), { enableForeignKeyConstraints: true });
  // As the service opens it.
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 16384');
  database.exec('pragma secure_delete = fast; pragma temp_store = memory; pragma cache_size = -8192');
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
  const { caa } = dnsLookups([server]);
  const { signal } = new AbortController();
  const lastOf = (orderId: string): Last => {
    const last = orders.get(orderId);
    if (!last) throw new Error(`there is no order ${orderId}`);
    return last;
  };

  return await serveBare(database, {
    async ask(orderId) {
      const answers = await caa(NAMES, { accountId: String(lastOf(orderId).order.account_id), signal });
      if (answers.some(({ kind }) => kind !== 'absent')) throw new Error('the name server has failed');
    },
    writeDown({ orderId, certificateId, toBeSigned }) {
      const { certificate } = lastOf(orderId);
      const text = Buffer.from(toBeSigned).toString('base64');
      insert.signing(certificate, {
        ...{ certificate_id: certificateId, to_be_signed: text, serial: serialOf(certificateId), key_reported: 0 },
        ...{ prepared_at: Date.now(), lease_ends_at: Date.now() },
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
        ...{ id: certificateId, serial: serialOf(certificateId), der: Buffer.from(der).toString('base64') },
        ...{ version: last.version, issued_at: now, created_at: now },
      });
      insert.audit(last.audit, { id: newId(), at: now });
      insert.event(last.event, { id: newId(), certificate_id: certificateId, created_at: now, settled_at: now });
    },
  });
}

const serialOf = (certificateId: string): string => Buffer.from(certificateId).toString('hex').slice(0, 32);

function lastRows(database: DatabaseSync): Map<string, Last> {
  const one = (text: string, ...values: SQLInputValue[]) => database.prepare(text).get(...values) as Values;
  const orders = database.prepare('select * from certificate_order').all() as Values[];
  return new Map(
    orders.map((order) => [
      String(order.id),
      {
        order,
        certificate: one('select * from certificate where id = ?', order.current_certificate_id ?? null),
        audit: one('select * from audit where account_id = ? order by length(details) desc', order.account_id ?? null),
        event: one('select * from outbox where order_id = ?', order.id ?? null),
        version: 1,
        revision: Number(order.revision),
      },
    ]),
  );
}

/** Inserts a row that has the columns of another table's, where the names are the same, but for those given. */
function inserter(database: DatabaseSync, table: string): (like: Values, but: Values) => void {
  const columns = database.prepare(`select name from pragma_table_info('${table}')`).all() as { name: string }[];
  const names = columns.map(({ name }) => name);
  const insert = database.prepare(`insert into ${table} (${names}) values (${names.map(() => '?')})`);
  return (like, but) => void insert.run(...names.map((name) => but[name] ?? like[name] ?? null));
}

if (import.meta.main) process.send?.(await serveSameRows(process.argv[2] ?? '.', process.argv[3] ?? ''));
