// Every environment variable that Reseal reads: purpose, default, bounds and example.
import { availableParallelism } from 'node:os';
import {
  accountRule,
  addressOrRange,
  addressRule,
  anyText,
  country,
  databaseUrl,
  dnsServer,
  flag,
  hostName,
  integer,
  list,
  logFormat,
  networkOnly,
  noticeDays,
  optional,
  publicUrl,
  rate,
  schedule,
  sealKeyText,
  text,
  token,
  type Variable,
} from './values.ts';

export const VARIABLES = {
  RESEAL_DATA_DIR: text('where the embedded database and key files live', '/var/lib/reseal', './data'),
  // Loopback by default, so that a first start exposes nothing.
  RESEAL_HOST: text('address to listen on', '0.0.0.0', '127.0.0.1'),
  // 0 takes any free port.
  RESEAL_PORT: integer('port to listen on', 8080, 0, 65_535),
  RESEAL_PUBLIC_URL: optional('the address callers use', 'https://certs.example.com/pki', publicUrl),
  RESEAL_DATABASE_URL: optional(
    'PostgreSQL instead of the embedded database',
    'postgres://user@db/reseal',
    databaseUrl,
  ),
  // Ten leave room for several instances on a small PostgreSQL (100 connections).
  RESEAL_DATABASE_CONNECTIONS: integer('connections to PostgreSQL at most', 10, 1, 500),
  // While a long reader, such as a backup, keeps its snapshot, the log of the embedded database can only grow.
  RESEAL_WAL_LIMIT_MIB: integer(
    'size of the embedded database’s WAL at which writes are refused',
    1_024,
    64,
    1_048_576,
  ),
  RESEAL_SEAL_KEY: optional('seal key instead of a file', '"$(openssl rand -base64 32)"', sealKeyText),
  RESEAL_SEAL_KEY_FILE: optional('file of the seal key', '/run/secrets/reseal-seal.key', anyText),
  RESEAL_TLS_CERT_FILE: optional('serve HTTPS with this certificate chain', '/etc/reseal/tls.pem', anyText),
  RESEAL_TLS_KEY_FILE: optional('private key of that certificate', '/etc/reseal/tls.key', anyText),
  RESEAL_TRUSTED_PROXIES: list('proxies whose X-Forwarded-For is trusted', '10.0.0.0/8,192.0.2.7', addressOrRange),
  RESEAL_DNS_SERVERS: list('DNS resolvers', '192.0.2.53,[2001:db8::53]:5353', dnsServer),
  RESEAL_DNS_PERSPECTIVES: list(
    'additional resolvers that must corroborate validation',
    '192.0.2.54,192.0.2.55',
    dnsServer,
  ),
  // Off by default: a root that no one outside trusts is not bound by public rules, and most start with one resolver.
  RESEAL_REQUIRE_PERSPECTIVES: flag('issue under public rules only with as many perspectives as they ask for'),
  // Signed wrongly on purpose, by a public operator, for this very test.
  RESEAL_DNSSEC_TEST_NAME: text(
    'a name whose DNSSEC must fail, asked to prove that resolvers validate',
    'broken.example.com',
    'dnssec-failed.org',
    hostName,
  ),
  RESEAL_LINTERS_FILE: optional(
    'linters that certificates are shown to before they are signed',
    '/etc/reseal/linters.json',
    anyText,
  ),
  RESEAL_ISSUER_NAMES: list('issuer domain names in CAA and persistent records', 'ca.example.com', hostName),
  RESEAL_DCV_ALLOW: list(
    'private addresses allowed for file validation of products of private trust',
    '10.0.0.0/8',
    addressRule,
  ),
  // Other than 80 only for development machines, where port 80 is privileged.
  RESEAL_DCV_HTTP_PORT: integer('port for file validation', 80, 1, 65_535),
  RESEAL_DCV_TLS_PORT: integer('port for validation by tls-alpn-01', 443, 1, 65_535),
  // A challenge value must not be valid for longer than 30 days.
  RESEAL_PENDING_DAYS: integer('days until a pending certificate expires', 30, 1, 30),
  RESEAL_CALLBACK_TEST_RATE: optional('callback tests per account: burst and refill time', '10/min', rate),
  // A test holds a socket and up to 16 KiB for at most ten seconds.
  RESEAL_CALLBACK_TESTS_AT_ONCE: integer('concurrent callback tests in this process', 64, 1, 10_000),
  RESEAL_CALLBACK_TESTS_PER_ACCOUNT: integer('concurrent callback tests for one account', 5, 1, 10_000),
  RESEAL_CALLBACK_TESTS_PER_HOST: integer('concurrent callback tests to one host', 10, 1, 10_000),
  RESEAL_CALLBACK_SCHEDULE: optional('delays between retries of a failed callback', '5s,30s,5min,30min,2h', schedule),
  // Each holds a socket for at most 15 seconds. Half of them are reserved for first attempts.
  RESEAL_CALLBACKS_AT_ONCE: integer('concurrent callbacks in this process', 256, 2, 10_000),
  RESEAL_CALLBACKS_PER_ACCOUNT: integer('concurrent callbacks for one account', 32, 1, 10_000),
  RESEAL_CALLBACKS_PER_HOST: integer('concurrent callbacks to one host', 64, 1, 10_000),
  RESEAL_CALLBACK_RETENTION_DAYS: integer('days that settled callbacks are kept', 90, 1, 3_650),
  // Three years; the audit of a public authority asks for two.
  RESEAL_AUDIT_RETENTION_DAYS: integer('days that audit rows are kept', 1_095, 1, 36_500),
  // A key counts for a day.
  RESEAL_IDEMPOTENCY_RETENTION_DAYS: integer('days that idempotency keys are kept', 7, 1, 365),
  RESEAL_CALLBACK_ROTATION_HOURS: integer('hours that a replaced signing secret still signs', 24, 0, 8_760),
  RESEAL_EXPIRY_NOTICE_DAYS: optional(
    'days before its end at which a certificate is expiring',
    '30,14,7,1',
    noticeDays,
  ),
  RESEAL_CALLBACK_ALLOW: list(
    'private addresses callbacks may go to',
    '10.1.2.3:8443,ACCOUNT=10.9.0.0/16',
    accountRule,
  ),
  RESEAL_CALLBACK_DENY: list('public addresses callbacks may not go to', '192.0.2.0/24,[2001:db8::1]:443', addressRule),
  RESEAL_CALLBACK_ROOTS_FILE: optional(
    'additional roots to trust in receivers, as PEM',
    '/etc/reseal/roots.pem',
    anyText,
  ),
  RESEAL_SANDBOX_ALLOW: list('your own receivers; in the sandbox only', '127.0.0.1:9443', addressRule),
  // What RFC 8555 lets a server do, and clients must bear.
  RESEAL_SANDBOX_BAD_NONCES: integer('percentage of good ACME nonces to refuse; in the sandbox only', 0, 0, 100),
  RESEAL_SANDBOX_FAILED_VALIDATIONS: integer('percentage of ACME validations to fail; in the sandbox only', 0, 0, 100),
  RESEAL_SANDBOX_VALIDATION_SECONDS: integer('seconds before each ACME validation; in the sandbox only', 0, 0, 30),
  RESEAL_SANDBOX_SHUFFLE: flag('list the authorizations of an ACME order in any order; in the sandbox only'),
  RESEAL_SANDBOX_NO_REUSE: flag('ask every ACME order for every name, proven or not; in the sandbox only'),
  RESEAL_ACME_TERMS_URL: optional(
    'terms of service that new ACME accounts must agree to',
    'https://example.com/terms',
    publicUrl,
  ),
  RESEAL_METRICS_TOKEN: optional('bearer token for /metrics', 'a-long-random-text', token),
  // Besides loopback. Account holders may sign in from anywhere.
  RESEAL_CONSOLE_NETWORKS: list('networks from which operators may use the console', '10.1.0.0/16', networkOnly),
  RESEAL_PKI_URL: optional('plain HTTP address of issuer certificates and CRLs', 'http://pki.example.com', publicUrl),
  RESEAL_CA_NAME: text('organization in the names of the issuers made on first start', 'Acme', 'Reseal'),
  // XX, which is assigned to no country, until the operator names one: linters ask for a country in every authority.
  RESEAL_CA_COUNTRY: country('country in the names of the issuers, ISO 3166', 'DE', 'XX'),
  RESEAL_CA_ROOT_YEARS: integer('lifetime of a new root in years', 20, 1, 40),
  RESEAL_CA_ISSUING_YEARS: integer('lifetime of a new issuing authority in years', 10, 1, 20),
  RESEAL_HSM_PIN_FILE: optional(
    'file with the PIN of tokens whose URI names none',
    '/run/secrets/reseal-hsm.pin',
    anyText,
  ),
  RESEAL_PRODUCTS_FILE: optional('products of your own, as JSON', '/etc/reseal/products.json', anyText),
  // More than four gain little on one database. 0 serves from a single process.
  RESEAL_WORKERS: integer('processes that answer requests', Math.min(4, availableParallelism()), 0, 64),
  // A request holds at most one body and one database connection; this bounds memory under load.
  RESEAL_MAX_REQUESTS: integer('concurrent requests of accounts; beyond that they wait for a second', 512, 1, 100_000),
  // Each may wait seconds for names of the caller's choosing.
  RESEAL_PLACEMENTS_PER_ACCOUNT: integer('orders of one account that are placed at once', 32, 1, 10_000),
  RESEAL_DRY_RUNS_PER_ACCOUNT: integer('dry runs of one account at once', 16, 1, 10_000),
  RESEAL_CHECKS_PER_ACCOUNT: integer('domain checks of one account at once, on request', 16, 1, 10_000),
  RESEAL_OPEN_ORDERS_PER_ACCOUNT: integer('orders of one account that may wait for a certificate', 1_000, 1, 1_000_000),
  // Some two million certificates.
  RESEAL_STORED_MIB_PER_ACCOUNT: integer('MiB that the certificates of one account may take', 10_240, 1, 100_000_000),
  // Load balancers need two or three health checks to notice.
  RESEAL_DRAIN_SECONDS: integer('seconds that /readyz fails before a shutdown stops listening', 5, 0, 300),
  // Together with the drain below 30 s, after which Kubernetes kills by default.
  RESEAL_SHUTDOWN_SECONDS: integer('seconds that a shutdown waits for requests in progress', 20, 0, 3_600),
  RESEAL_LOG_FORMAT: optional('json for machines, text for people', 'json', logFormat),
  RESEAL_ENV_FILE: optional('file with further variables, as --env-file names it', '/etc/reseal/reseal.env', anyText),
  RESEAL_LOG_PROBES: flag('log successful requests to /healthz, /readyz and /metrics too'),
} as const satisfies Record<string, Variable<unknown>>;

export type Values = { [Name in keyof typeof VARIABLES]: (typeof VARIABLES)[Name]['defaultValue'] };
