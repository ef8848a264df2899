// reseal seal status | rotate
import { EXIT } from '../kernel/problem.ts';
import { type Command, everySecond, type SealStatus } from './command.ts';
import { table, time } from './values.ts';

export const sealStatus: Command = {
  store: 'existing',
  about: 'count sealed values by the key that sealed them, and show which instances hold which keys',
  examples: ['seal status', 'seal status --json'],
  positionals: [],
  options: {},
  async run(_given, { storeCommands }) {
    const { sealStatus } = await storeCommands();
    const status = await sealStatus();
    const instances = status.instances.map(({ name, seenAt, keyIds, activeKeyId }) => ({
      name,
      seen_at: new Date(seenAt).toISOString(),
      keys: keyIds,
      active_key: activeKeyId,
    }));
    return {
      json: {
        active_key: status.activeKeyId,
        keys: keysIn(status).map(([key, state, values]) => ({ key, state, values })),
        values: status.counts.map(({ table, column, keyId, values }) => ({ table, column, key: keyId, values })),
        instances,
      },
      text: [
        table(
          ['KEY', 'STATE', 'VALUES'],
          keysIn(status).map(([key, state, values]) => [key, state, String(values)]),
        ),
        table(
          ['COLUMN', 'KEY', 'VALUES'],
          status.counts.map((one) => [`${one.table}.${one.column}`, one.keyId, String(one.values)]),
        ),
        status.instances.length === 0
          ? 'No instance is running.'
          : table(
              ['INSTANCE', 'SEALS UNDER', 'KEYS', 'SEEN'],
              status.instances.map((one) => [one.name, one.activeKeyId, one.keyIds.join(' '), time(one.seenAt)]),
            ),
      ].join('\n\n'),
      exitCode: status.missing === undefined ? EXIT.ok : EXIT.refused,
    };
  },
};

/** Keys that are held or needed: `active` seals, `unused` can be removed, `missing` makes values unreadable. */
function keysIn({ activeKeyId, keyIds, counts }: SealStatus): [key: string, state: string, values: number][] {
  const ids = new Set([...keyIds, ...counts.map(({ keyId }) => keyId)]);
  return [...ids].map((id) => {
    const values = counts.filter(({ keyId }) => keyId === id).reduce((total, one) => total + one.values, 0);
    const isNew = id === keyIds[0] && id !== activeKeyId;
    const heldState = id === activeKeyId ? 'active' : values > 0 ? 'needed' : isNew ? 'new' : 'unused';
    return [id, keyIds.includes(id) ? heldState : 'MISSING', values];
  });
}

export const sealRotate: Command = {
  store: 'existing',
  about: 're-seal every value under the first key of the key file; the service may run; can be repeated at any time',
  examples: ['seal rotate'],
  positionals: [],
  options: {},
  async run(_given, { storeCommands, report }) {
    const { rotateSeal } = await storeCommands();
    const show = everySecond(report);
    const { keyId, resealed, unopenable } = await rotateSeal(({ resealed, total, waitingFor }) =>
      show(
        `${resealed} of ${total} values are sealed under the new key${waitingFor.length > 0 ? `; waiting for ${waitingFor.join(', ')}` : ''}`,
      ),
    );
    const done = `${resealed} values were re-sealed. The key ${keyId} seals.`;
    return {
      json: { key: keyId, resealed, unopenable },
      text:
        unopenable.length > 0
          ? `${done}\nThese values do not open, and were left as they are:\n  ${unopenable.join('\n  ')}`
          : `${done} Other keys can be removed once "reseal seal status" shows no value under them.`,
      exitCode: unopenable.length > 0 ? EXIT.refused : EXIT.ok,
    };
  },
};
