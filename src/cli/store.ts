// reseal store copy
import { EXIT, Problem } from '../kernel/problem.ts';
import { type Command, everySecond } from './command.ts';
import { table } from './values.ts';

export const storeCopy: Command = {
  store: 'existing',
  about: 'copy the store of a stopped service into an empty one, of either engine, and verify the copy',
  examples: ['store copy --to postgres://reseal@db/reseal', 'store copy --to /var/lib/reseal'],
  positionals: [],
  options: { to: { type: 'string', about: 'a postgres:// address, or a folder for the embedded database' } },
  async run({ options }, { storeCommands, report }) {
    if (typeof options.to !== 'string' || options.to === '') {
      throw new Problem(EXIT.usage, '--to is missing', 'Name a postgres:// address, or a folder.');
    }
    const show = everySecond(report);
    const { copy } = await storeCommands();
    const copied = await copy(options.to, ({ step, table, rows }) => show(`${step} ${table}: ${rows} rows`));
    const { from, to, contents, rows, digest } = copied;
    return {
      json: { from, to, rows, digest, tables: contents },
      text: `${table(
        ['TABLE', 'ROWS', 'DIGEST'],
        contents.map((one) => [one.table, String(one.rows), one.digest.slice(0, 16)]),
      )}

${rows} rows were copied from ${from} to ${to}; every table has the same rows and digest in both.
Next: start the service on the copy, with the same seal key. Keep the original until you have a backup of the copy.`,
    };
  },
};
