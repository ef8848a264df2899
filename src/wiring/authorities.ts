// The operator's commands on authorities: those of everyday use, and the custody of keys.
import { readBlocklist } from '../adapters/ca/blocklist-file.ts';
import { describe, readImportedIssuer } from '../adapters/ca/imported-issuer.ts';
import type { CustodyCommands } from '../cli/ceremony.ts';
import type { Authorities } from '../cli/command.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { manageAuthorities } from '../usecases/issuance/manage-authorities.ts';
import type { App } from './app.ts';
import { custodyCommands } from './custody.ts';
import { type HsmConfig, provenKey } from './hsm.ts';

export function authorityCommands(
  { store, newId }: Pick<App, 'store' | 'newId'>,
  config: HsmConfig,
  now: Clock,
): Authorities {
  const authorities = manageAuthorities({ store, now, newId, describe });
  return {
    ...authorities,
    async adopt(own) {
      const key = 'pem' in own.key ? own.key.pem : await provenKey(config, own.key.uri);
      return await authorities.adopt(readImportedIssuer({ ...own, key }, now(), newId), own.chain);
    },
    async block(list) {
      const { fingerprints, counts } = readBlocklist(list);
      await authorities.block(fingerprints);
      return { blocked: fingerprints.length, counts };
    },
  };
}

/** Issuance, which takes a second to open, is opened only to publish a list. */
export const openCustody = (app: App, config: Config, now: Clock): CustodyCommands =>
  custodyCommands(app, config, now, async (issuerId) => {
    const { openIssuance } = await import('./issuance.ts');
    const issuance = await openIssuance(app, config, now);
    await issuance.crls.publish([{ issuerId, shard: 0 }]).finally(() => issuance.close());
  });
