// reseal cloud-key list | destroy. The operator has no access code, so it can destroy a key but not sign with it.
import { EXIT, Problem } from '../kernel/problem.ts';
import { byOperator } from '../usecases/access/audit.ts';
import type { HeldKey } from '../usecases/cloud-keys/operate-cloud-keys.ts';
import type { Command } from './command.ts';
import { pageSize, table, time } from './values.ts';

function stateOf({ key, isLocked }: HeldKey): string {
  if (key.destroyedAt !== null) return 'destroyed';
  return isLocked ? 'locked' : 'active';
}

const keyView = (held: HeldKey) => ({
  id: held.key.id,
  account_id: held.key.accountId,
  key_type: held.key.publicKey.type,
  bits: held.key.publicKey.bits,
  state: stateOf(held),
  locked_until: held.isLocked ? time(held.key.lockedUntil) : null,
  created_at: time(held.key.createdAt),
  destroyed_at: held.key.destroyedAt === null ? null : time(held.key.destroyedAt),
  certificate_id: held.certificate?.id ?? null,
});

export const cloudKeyList: Command = {
  store: 'existing',
  about: 'list the cloud-held keys of an account, oldest first',
  examples: ['cloud-key list ACCOUNT', 'cloud-key list ACCOUNT --limit 50 --after 01…'],
  positionals: ['ACCOUNT'],
  options: {
    limit: { type: 'string', about: 'maximum number of results (default 100)' },
    after: { type: 'string', about: 'continue after this key' },
  },
  async run({ positionals: [accountId = ''], options }, { withCloudKeys }) {
    const page = { limit: pageSize(options.limit), after: options.after?.toString() };
    const held = await withCloudKeys((cloudKeys) => cloudKeys.list(accountId, page));
    const rows = held.map((one) => {
      const { id, publicKey, createdAt } = one.key;
      return [id, `${publicKey.type} ${publicKey.bits}`, stateOf(one), time(createdAt), one.certificate?.id ?? '-'];
    });
    return {
      json: { cloud_keys: held.map(keyView) },
      text:
        held.length === 0
          ? 'The account has no cloud-held keys.'
          : table(['ID', 'KEY', 'STATE', 'CREATED', 'CERTIFICATE'], rows),
    };
  },
};

export const cloudKeyDestroy: Command = {
  store: 'existing',
  about: 'destroy a cloud-held key of an account irreversibly',
  examples: ['cloud-key destroy ACCOUNT KEY --yes'],
  positionals: ['ACCOUNT', 'KEY'],
  options: { yes: { type: 'boolean', about: 'confirm: no more signatures with this key' } },
  async run({ positionals: [accountId = '', id = ''], options }, { withCloudKeys }) {
    if (options.yes !== true) {
      throw new Problem(
        EXIT.usage,
        'a destroyed key cannot be restored',
        `Confirm with: reseal cloud-key destroy ${accountId} ${id} --yes`,
      );
    }
    const held = await withCloudKeys((cloudKeys) => cloudKeys.destroy(byOperator(accountId), id));
    return {
      json: { cloud_key: keyView(held) },
      text: `Key ${id} is destroyed. Its certificates are not revoked.`,
    };
  },
};
