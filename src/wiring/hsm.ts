// Opens the tokens that hold issuer keys.
import { pinFromFile, type ReadPin } from '../adapters/hsm/pin-file.ts';
import { type OpenTokenKeys, tokenKeys } from '../adapters/hsm/token-keys.ts';
import type { Config } from '../config/config.ts';
import type { App } from './app.ts';

type HsmConfig = Pick<Config, 'hsmPinFile' | 'dataDir'>;

/** PIN from the file that the URI names, or else the configured one. */
export const configuredPin =
  ({ hsmPinFile, dataDir }: HsmConfig) =>
  ({ pinFile }: { readonly pinFile: string | null }, token: string): ReadPin =>
    pinFromFile(pinFile ?? hsmPinFile, token, dataDir);

export interface Tokens extends OpenTokenKeys {
  /** For /readyz: empty while all sign. A token that is away does not make the service unready: other issuers sign. */
  detail(): Readonly<Record<string, unknown>>;
}

export function openTokens(config: HsmConfig, { log, metrics }: Pick<App, 'log' | 'metrics'>): Tokens {
  const keys = tokenKeys({
    pinFor: configuredPin(config),
    observe: (token) => ({
      onAnswered: metrics.hsm.answered,
      onFailed(kind, text) {
        metrics.hsm.failed(kind);
        if (kind !== 'refused') log({ event: 'warning', text: `the token ${token}: ${text}` });
      },
      onStarted(isRestart) {
        if (isRestart) metrics.hsm.restarted();
      },
    }),
  });
  metrics.hsm.watch(keys.states);
  return {
    ...keys,
    detail() {
      const states = keys.states();
      const away = states.filter(({ state }) => state === 'waiting' || state === 'blocked');
      return away.length === 0 ? {} : { hsm: { tokens: states.length, unavailable: away.length } };
    },
  };
}
