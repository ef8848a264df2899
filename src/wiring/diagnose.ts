// The checks of the doctor, one after the other, over a configuration that could be read. Creates and migrates nothing.
import { checkFolder, checkSealKey, checkTls } from '../adapters/doctor/files.ts';
import { checkProducts } from '../adapters/doctor/products.ts';
import { checkPublicRules } from '../adapters/doctor/public-rules.ts';
import { checkServedNumbers } from '../adapters/doctor/published-crls.ts';
import { checkResolvers } from '../adapters/doctor/resolver.ts';
import { checkRuntime } from '../adapters/doctor/runtime.ts';
import { checkSm2 } from '../adapters/doctor/sm2.ts';
import { checkStore } from '../adapters/doctor/store.ts';
import { sealKeysOf } from '../adapters/seal/seal-check.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { type Diagnostic, Problem } from '../kernel/problem.ts';
import { checkAddresses } from './addresses.ts';
import { diagnoseTokens } from './hsm.ts';
import { diagnoseLinters } from './lint.ts';
import { requireNoForgottenStore } from './start-up.ts';
import { resolverSettings } from './validation.ts';

export async function* diagnose(config: Config, now: Clock): AsyncGenerator<Diagnostic, void> {
  const products = checkProducts(config.productsFile);
  const files = [checkFolder(config.dataDir), checkSealKey(config.sealKey), checkTls(config.tls, now())];
  const { perspectives, requiresPerspectives: isEnforced } = config.validation;
  const offer = { products: products.products, perspectives: perspectives.length, isEnforced };
  yield products.diagnostic;
  yield checkPublicRules(offer, now());
  yield await checkRuntime();
  yield checkSm2();
  yield* files;
  // With a problem in the files, opening the store would only report it again.
  if (files.every(({ state }) => state !== 'problem')) {
    const stores = await forgottenStore(config);
    const store = stores ?? (await checkStore(config.database, sealKeysOf(config.sealKey), now, products.longestDays));
    yield* store;
    const isInUse = store.some(({ check }) => check === 'issuers');
    if (isInUse) yield* await checkServedNumbers(config.database, config.dataDir);
    if (isInUse) yield await checkAddresses(config);
    if (isInUse) yield* await diagnoseTokens(config, now);
  }
  yield await diagnoseLinters(config, products.products, now());
  yield* await checkOwnResolvers(config);
}

/** A sandbox asks its own name server, in whose zones nothing is signed. */
async function checkOwnResolvers(config: Config): Promise<Diagnostic[]> {
  const { readSandboxFile } = await import('../sandbox/folder.ts');
  const address = config.dnsServers.length === 0 ? readSandboxFile(config.dataDir)?.dns?.address : undefined;
  if (address === undefined) return await checkResolvers(resolverSettings(config));
  return [{ check: 'resolver', state: 'ok', text: `${address}, the name server of this sandbox` }];
}

/** An unreachable database is reported by the check of the store itself. */
async function forgottenStore(config: Config): Promise<Diagnostic[] | undefined> {
  try {
    await requireNoForgottenStore(config);
  } catch (error) {
    if (error instanceof Problem) {
      return [{ check: 'store', state: 'problem', text: error.message, remedy: error.remedy }];
    }
  }
  return undefined;
}
