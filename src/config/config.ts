// Reads the environment once into one frozen Config. An invalid value is an error that names the variable, the reason and
// an example.

import { join, resolve } from 'node:path';
import { MIB, type Quotas } from '../domain/access/quota.ts';
import type { AddressRule, Network } from '../domain/egress/addresses.ts';
import type { Rate } from '../domain/rate.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../kernel/durations.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { type Addresses, type AddressRecord, usedAddresses } from './addresses.ts';
import type { AccountRule, Variable } from './values.ts';
import { VARIABLES, type Values } from './variables.ts';

export type Config = Readonly<{
  dataDir: string;
  host: string;
  port: number;
  /** Without a trailing slash. Undefined: derived from the address it listens on. */
  publicUrl: string | undefined;
  /** As the environment has them; `used` is what the fields of `validation` and `authority` hold. */
  addresses: AddressRecord;
  database:
    | { kind: 'sqlite'; file: string; walLimitBytes: number }
    | { kind: 'postgresql'; url: string; maxConnections: number };
  sealKey: { kind: 'text'; text: string } | { kind: 'file'; file: string };
  tls: { certFile: string; keyFile: string } | undefined;
  trustedProxies: readonly string[];
  dnsServers: readonly string[];
  dnssecTestName: string;
  validation: ValidationConfig;
  callbacks: CallbackConfig;
  acmeTermsUrl: string | undefined;
  metricsToken: string | undefined;
  /** From which operators may use the console, beside this machine. */
  consoleNetworks: readonly Network[];
  authority: { country: string; organization: string; rootYears: number; issuingYears: number; pkiUrl: string };
  productsFile: string | undefined;
  lintersFile: string | undefined;
  hsmPinFile: string | undefined;
  /** Processes that answer requests, beside one for background work; 0 for one process that does both. */
  workers: number;
  maxRequests: number;
  drainMs: number;
  shutdownMs: number;
  logFormat: 'json' | 'text' | undefined;
  logsProbes: boolean;
  /** In a sandbox only. */
  acmeFaults: AcmeFaultConfig;
  retention: { auditMs: number; idempotencyMs: number };
  /** Of one account, over all processes. */
  inFlight: { placement: number; dry_run: number; domain_check: number };
  /** Of accounts for which the operator has set no others. */
  quotas: Quotas;
}>;

export type AcmeFaultConfig = Readonly<{
  badNoncePercent: number;
  failedValidationPercent: number;
  validationMs: number;
  shufflesAuthorizations: boolean;
  reusesNoProofs: boolean;
}>;

export type ValidationConfig = Readonly<{
  /** At least one; the first is written into instructions. */
  issuers: readonly string[];
  /** Prefix of account URIs. */
  accountBase: string;
  perspectives: readonly string[];
  /** Refuses to issue under public rules with fewer perspectives than they ask for. */
  requiresPerspectives: boolean;
  allow: readonly AddressRule[];
  httpPort: number;
  tlsPort: number;
  pendingMs: number;
}>;

export type CallbackConfig = Readonly<{
  testRate: Rate;
  testsAtOnce: number;
  testsPerAccount: number;
  testsPerHost: number;
  schedule: readonly number[];
  atOnce: number;
  perAccount: number;
  perHost: number;
  retentionMs: number;
  rotationMs: number;
  /** The highest first. */
  noticeDays: readonly number[];
  allow: readonly AccountRule[];
  deny: readonly AddressRule[];
  rootsFile: string | undefined;
  sandboxAllow: readonly AddressRule[];
}>;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Throws one Problem that lists every invalid variable. Warnings do not prevent a start. */
export function readConfig(environment: Environment): { config: Config; warnings: string[] } {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, variable] of Object.entries<Variable<unknown>>(VARIABLES)) {
    const given = environment[name];
    // Empty means unset: shells and compose files clear a variable that way.
    const parsed = given === undefined || given === '' ? { value: variable.defaultValue } : variable.parse(given);
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
  const addresses = addressesFrom(v);
  return {
    dataDir,
    host: v.RESEAL_HOST,
    port: v.RESEAL_PORT,
    publicUrl: v.RESEAL_PUBLIC_URL,
    addresses,
    database: Object.freeze(
      v.RESEAL_DATABASE_URL === undefined
        ? {
            kind: 'sqlite',
            file: join(dataDir, 'reseal.db'),
            walLimitBytes: v.RESEAL_WAL_LIMIT_MIB * 1024 * 1024,
          }
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
    dnssecTestName: v.RESEAL_DNSSEC_TEST_NAME,
    validation: Object.freeze(validationConfig(v, addresses.used)),
    callbacks: Object.freeze(callbackConfig(v)),
    acmeFaults: {
      badNoncePercent: v.RESEAL_SANDBOX_BAD_NONCES,
      failedValidationPercent: v.RESEAL_SANDBOX_FAILED_VALIDATIONS,
      validationMs: v.RESEAL_SANDBOX_VALIDATION_SECONDS * SECOND_MS,
      shufflesAuthorizations: v.RESEAL_SANDBOX_SHUFFLE,
      reusesNoProofs: v.RESEAL_SANDBOX_NO_REUSE,
    },
    acmeTermsUrl: v.RESEAL_ACME_TERMS_URL,
    metricsToken: v.RESEAL_METRICS_TOKEN,
    consoleNetworks: Object.freeze(v.RESEAL_CONSOLE_NETWORKS),
    authority: Object.freeze({
      country: v.RESEAL_CA_COUNTRY,
      organization: v.RESEAL_CA_NAME,
      rootYears: v.RESEAL_CA_ROOT_YEARS,
      issuingYears: v.RESEAL_CA_ISSUING_YEARS,
      pkiUrl: addresses.used.pki_url,
    }),
    productsFile: v.RESEAL_PRODUCTS_FILE,
    lintersFile: v.RESEAL_LINTERS_FILE,
    hsmPinFile: v.RESEAL_HSM_PIN_FILE,
    workers: v.RESEAL_WORKERS,
    maxRequests: v.RESEAL_MAX_REQUESTS,
    drainMs: v.RESEAL_DRAIN_SECONDS * 1000,
    shutdownMs: v.RESEAL_SHUTDOWN_SECONDS * 1000,
    logFormat: v.RESEAL_LOG_FORMAT,
    logsProbes: v.RESEAL_LOG_PROBES,
    retention: Object.freeze({
      auditMs: v.RESEAL_AUDIT_RETENTION_DAYS * DAY_MS,
      idempotencyMs: v.RESEAL_IDEMPOTENCY_RETENTION_DAYS * DAY_MS,
    }),
    inFlight: Object.freeze({
      placement: v.RESEAL_PLACEMENTS_PER_ACCOUNT,
      dry_run: v.RESEAL_DRY_RUNS_PER_ACCOUNT,
      domain_check: v.RESEAL_CHECKS_PER_ACCOUNT,
    }),
    quotas: Object.freeze({
      openOrders: v.RESEAL_OPEN_ORDERS_PER_ACCOUNT,
      storedBytes: v.RESEAL_STORED_MIB_PER_ACCOUNT * MIB,
    }),
  };
}

function addressesFrom(v: Values): AddressRecord {
  const { RESEAL_PUBLIC_URL: url, RESEAL_PKI_URL: pki, RESEAL_ISSUER_NAMES: names } = v;
  const configured = {
    ...(url !== undefined && { public_url: url }),
    ...(pki !== undefined && { pki_url: pki }),
    ...(names.length > 0 && { issuer_names: names.join() }),
  };
  return { configured, used: usedAddresses(configured, listeningUrl({ host: v.RESEAL_HOST, port: v.RESEAL_PORT })) };
}

export const listeningUrl = ({ host, port }: Pick<Config, 'host' | 'port'>): string => `http://${host}:${port}`;

/** Replaces a wildcard address, which callers cannot connect to, with localhost. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

/** The same configuration with the addresses that the store has recorded. */
export const withAddresses = (config: Config, { configured, used }: AddressRecord): Config => ({
  ...config,
  publicUrl: configured.public_url,
  validation: { ...config.validation, ...validationAddresses(used) },
  authority: { ...config.authority, pkiUrl: used.pki_url },
});

const validationAddresses = ({ public_url, issuer_names }: Addresses) => ({
  issuers: issuer_names.split(','),
  accountBase: `${public_url}/accounts/`,
});

function validationConfig(v: Values, used: Addresses): ValidationConfig {
  return {
    ...validationAddresses(used),
    perspectives: v.RESEAL_DNS_PERSPECTIVES,
    requiresPerspectives: v.RESEAL_REQUIRE_PERSPECTIVES,
    allow: v.RESEAL_DCV_ALLOW,
    httpPort: v.RESEAL_DCV_HTTP_PORT,
    tlsPort: v.RESEAL_DCV_TLS_PORT,
    pendingMs: v.RESEAL_PENDING_DAYS * DAY_MS,
  };
}

/** 10/min: a burst of ten, refilled within a minute. */
const DEFAULT_TEST_RATE: Rate = { burst: 10, everyMs: 6_000 };
/** Contract delivery 4: backoff over more than three days, so that a receiver that breaks on Friday is served on Monday. */
const DEFAULT_SCHEDULE: readonly number[] = [
  ...[5_000, 30_000, 300_000, 1_800_000],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
];
const DEFAULT_NOTICE_DAYS: readonly number[] = [30, 14, 7, 1];

function callbackConfig(v: Values): CallbackConfig {
  return {
    testRate: v.RESEAL_CALLBACK_TEST_RATE ?? DEFAULT_TEST_RATE,
    testsAtOnce: v.RESEAL_CALLBACK_TESTS_AT_ONCE,
    testsPerAccount: v.RESEAL_CALLBACK_TESTS_PER_ACCOUNT,
    testsPerHost: v.RESEAL_CALLBACK_TESTS_PER_HOST,
    schedule: v.RESEAL_CALLBACK_SCHEDULE ?? DEFAULT_SCHEDULE,
    atOnce: v.RESEAL_CALLBACKS_AT_ONCE,
    perAccount: v.RESEAL_CALLBACKS_PER_ACCOUNT,
    perHost: v.RESEAL_CALLBACKS_PER_HOST,
    retentionMs: v.RESEAL_CALLBACK_RETENTION_DAYS * DAY_MS,
    rotationMs: v.RESEAL_CALLBACK_ROTATION_HOURS * HOUR_MS,
    noticeDays: v.RESEAL_EXPIRY_NOTICE_DAYS ?? DEFAULT_NOTICE_DAYS,
    allow: v.RESEAL_CALLBACK_ALLOW,
    deny: v.RESEAL_CALLBACK_DENY,
    rootsFile: v.RESEAL_CALLBACK_ROOTS_FILE,
    sandboxAllow: v.RESEAL_SANDBOX_ALLOW,
  };
}

/** Warnings only: Kubernetes injects RESEAL_… variables for a Service named reseal. */
function unknownVariables(environment: Environment): string[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith('RESEAL_') && !(name in VARIABLES))
    .map((name) => `${name} is not a variable Reseal knows; it is ignored. Is it misspelt?`);
}
