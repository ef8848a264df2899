// Opens the tokens that hold issuer keys: for the service, and for a command.

import type { HeldKey } from '../adapters/ca/imported-issuer.ts';
import type { IssuerKey } from '../adapters/ca/issuer-key.ts';
import { checkTokens } from '../adapters/doctor/tokens.ts';
import { pinFromFile, pinGiven, type ReadPin } from '../adapters/hsm/pin-file.ts';
import { LIMITS } from '../adapters/hsm/signer.ts';
import { type OpenTokenKeys, tokenKeys } from '../adapters/hsm/token-keys.ts';
import type { Config } from '../config/config.ts';
import { type IssuerKeyType, NotSigned } from '../domain/certificate/authority.ts';
import { BadKeyUri, formatKeyUri, type KeyUri, parseKeyUri } from '../domain/certificate/key-uri.ts';
import type { Clock } from '../domain/clock.ts';
import { type Diagnostic, EXIT, Problem } from '../kernel/problem.ts';
import { type App, openApp } from './app.ts';
import { askSecret } from './terminal.ts';

export type HsmConfig = Pick<Config, 'hsmPinFile' | 'dataDir'>;

/** PIN from the file that the URI names, or else the configured one. */
export const configuredPin =
  ({ hsmPinFile, dataDir }: HsmConfig) =>
  ({ pinFile }: { readonly pinFile: string | null }, token: string): ReadPin =>
    pinFromFile(pinFile ?? hsmPinFile, token, dataDir);

export interface Tokens extends OpenTokenKeys {
  /** For /readyz: empty while all sign. A token that is away does not make the service unready: other issuers sign. */
  detail(): Readonly<Record<string, unknown>>;
}

export function openTokens(
  config: HsmConfig,
  { log, metrics, signerProgram }: Pick<App, 'log' | 'metrics' | 'signerProgram'>,
): Tokens {
  const keys = tokenKeys({
    pinFor: configuredPin(config),
    program: signerProgram,
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
      const away = states.filter(({ isAvailable }) => !isAvailable);
      return away.length === 0 ? {} : { hsm: { tokens: states.length, unavailable: away.length } };
    },
  };
}

const SILENT = { onAnswered() {}, onFailed() {}, onStarted() {} };
/** A command waits for as long as a token may take to open. */
const PATIENT = { ...LIMITS, waitMs: LIMITS.startMs };

/** Throws a Problem. */
export async function withToken<T>(
  config: HsmConfig,
  text: string,
  work: (keys: OpenTokenKeys, uri: KeyUri) => Promise<T>,
): Promise<T> {
  const uri = uriOf(text);
  const pinFor = uri.pinFile || config.hsmPinFile ? configuredPin(config) : await askedPin();
  const keys = tokenKeys({ pinFor, observe: () => SILENT, isWritable: true, limits: PATIENT });
  try {
    return await work(keys, uri);
  } catch (error) {
    if (!(error instanceof NotSigned)) throw error;
    const why = error.cause instanceof Error ? error.cause.message : 'it does not answer';
    throw new Problem(EXIT.refused, `the token: ${why}`, 'Correct --key-uri, the PIN or the module (docs/hsm.md).');
  } finally {
    keys.close();
  }
}

async function askedPin(): Promise<() => ReadPin> {
  const pin = await askSecret('PIN of the token: ', 'Name a file that holds the PIN: RESEAL_HSM_PIN_FILE.');
  const read = pinGiven(pin);
  return () => read;
}

function uriOf(text: string): KeyUri {
  try {
    return parseKeyUri(text);
  } catch (error) {
    if (!(error instanceof BadKeyUri)) throw error;
    const example = "'pkcs11:token=ca;object=issuing?module-path=/usr/lib/softhsm/libsofthsm2.so'";
    throw new Problem(EXIT.usage, `--key-uri cannot be used: ${error.message}`, `Write it like ${example}`);
  }
}

/** Has a key in a token prove itself by a signature. */
export const provenKey = (config: HsmConfig, text: string): Promise<HeldKey> =>
  withToken(config, text, async (keys, uri) => {
    const { keyType } = await keys.describe(uri);
    return { uri: formatKeyUri(uri), isKeyOf: await keys.prove(uri, keyType) };
  });

/** Makes a key in a token, which it cannot leave. `work` may sign with it. */
export const withNewTokenKey = <T>(
  config: HsmConfig,
  text: string,
  keyType: IssuerKeyType,
  work: (key: IssuerKey) => Promise<T>,
): Promise<T> =>
  withToken(config, text, async (keys, uri) => {
    if (keyType === 'sm2') throw new Problem(EXIT.usage, 'SM2 keys are not made in tokens', 'Use p256, p384 or rsa.');
    const { spki } = await keys.generate(uri, keyType);
    if (spki === null) throw new Problem(EXIT.refused, 'the token does not show the public key', 'Use another token.');
    return await work(keys.open(formatKeyUri(uri), keyType, Buffer.from(spki, 'hex')));
  });

/** A store that cannot be opened is reported by its own check. */
export async function diagnoseTokens(config: Config, now: Clock): Promise<Diagnostic[]> {
  const app = await openApp(config, { now, log: () => {}, mustExist: true }).catch(() => undefined);
  if (!app) return [];
  const keys = tokenKeys({ pinFor: configuredPin(config), observe: () => SILENT, limits: PATIENT });
  try {
    return [await checkTokens(await app.store.issuers.list(), keys)];
  } finally {
    keys.close();
    await app.close();
  }
}
