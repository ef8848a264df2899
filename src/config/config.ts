// The environment, read once into one frozen Config. A value that does not fit is an error that says which variable, why, and what would fit.
import { join, resolve } from 'node:path';
import { EXIT, Problem } from '../kernel/problem.ts';
import { type CallbackConfig, callbackConfig } from './callbacks.ts';
import { type ValidationConfig, validationFrom } from './validation.ts';
import type { Variable } from './values.ts';
import { VARIABLES, type Values } from './variables.ts';

export type Config = Readonly<{
  dataDir: string;
  host: string;
  port: number;
  /** Without a trailing slash. Undefined: derived from the port once it is known. */
  publicUrl: string | undefined;
  database: { kind: 'sqlite'; file: string } | { kind: 'postgresql'; url: string; maxConnections: number };
  sealKey: { kind: 'text'; text: string } | { kind: 'file'; file: string };
  tls: { certFile: string; keyFile: string } | undefined;
  trustedProxies: readonly string[];
  dnsServers: readonly string[];
  validation: ValidationConfig;
  callbacks: CallbackConfig;
  metricsToken: string | undefined;
  authority: { organization: string; rootYears: number; issuingYears: number; pkiUrl: string };
  productsFile: string | undefined;
  maxRequests: number;
  shutdownMs: number;
  logFormat: 'json' | 'text' | undefined;
}>;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Throws one Problem that lists everything wrong with the environment. Warnings do not stop anything. */
export function readConfig(environment: Environment): { config: Config; warnings: string[] } {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, variable] of Object.entries<Variable<unknown>>(VARIABLES)) {
    const given = environment[name];
    // Set to nothing means not set: that is how shells and compose files clear a variable.
    const parsed = given === undefined || given === '' ? { value: variable.absent } : variable.parse(given);
    if ('value' in parsed) values[name] = parsed.value;
    else problems.push(`${name} (${variable.about}) ${parsed.reason}. Example: ${name}=${variable.example}`);
  }
  if ((values.RESEAL_TLS_CERT_FILE === undefined) !== (values.RESEAL_TLS_KEY_FILE === undefined)) {
    problems.push('RESEAL_TLS_CERT_FILE and RESEAL_TLS_KEY_FILE go together: set both or neither');
  }
  if (problems.length > 0) {
    throw new Problem(
      EXIT.configuration,
      `the configuration is not usable:\n  ${problems.join('\n  ')}`,
      'Correct the variables named above.',
    );
  }
  return { config: Object.freeze(configFrom(values as Values)), warnings: unknownVariables(environment) };
}

function configFrom(v: Values): Config {
  const dataDir = resolve(v.RESEAL_DATA_DIR);
  return {
    dataDir,
    host: v.RESEAL_HOST,
    port: v.RESEAL_PORT,
    publicUrl: v.RESEAL_PUBLIC_URL,
    database: Object.freeze(
      v.RESEAL_DATABASE_URL === undefined
        ? { kind: 'sqlite', file: join(dataDir, 'reseal.db') }
        : { kind: 'postgresql', url: v.RESEAL_DATABASE_URL, maxConnections: v.RESEAL_DATABASE_CONNECTIONS },
    ),
    sealKey: Object.freeze(
      v.RESEAL_SEAL_KEY === undefined
        ? { kind: 'file', file: resolve(v.RESEAL_SEAL_KEY_FILE ?? join(dataDir, 'seal.key')) }
        : { kind: 'text', text: v.RESEAL_SEAL_KEY },
    ),
    tls:
      v.RESEAL_TLS_CERT_FILE && v.RESEAL_TLS_KEY_FILE
        ? Object.freeze({ certFile: v.RESEAL_TLS_CERT_FILE, keyFile: v.RESEAL_TLS_KEY_FILE })
        : undefined,
    trustedProxies: Object.freeze(v.RESEAL_TRUSTED_PROXIES),
    dnsServers: Object.freeze(v.RESEAL_DNS_SERVERS),
    validation: Object.freeze(validationFrom(v)),
    callbacks: callbackConfig(v),
    metricsToken: v.RESEAL_METRICS_TOKEN,
    authority: Object.freeze({
      organization: v.RESEAL_CA_NAME,
      rootYears: v.RESEAL_CA_ROOT_YEARS,
      issuingYears: v.RESEAL_CA_ISSUING_YEARS,
      // Fetching a certificate's status over HTTPS would need a certificate whose status must be fetched first.
      pkiUrl:
        v.RESEAL_PKI_URL ??
        (v.RESEAL_PUBLIC_URL ?? `http://${v.RESEAL_HOST}:${v.RESEAL_PORT}`).replace(/^https:/, 'http:'),
    }),
    productsFile: v.RESEAL_PRODUCTS_FILE,
    maxRequests: v.RESEAL_MAX_REQUESTS,
    shutdownMs: v.RESEAL_SHUTDOWN_SECONDS * 1000,
    logFormat: v.RESEAL_LOG_FORMAT,
  };
}

/** Only warnings: a cluster injects variables for every service it knows, one named reseal included. */
function unknownVariables(environment: Environment): string[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith('RESEAL_') && !(name in VARIABLES))
    .map((name) => `${name} is not a variable Reseal knows; it is ignored. Is it misspelt?`);
}
