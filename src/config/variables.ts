// Every environment variable Reseal reads: what it is for, its default, its bounds and an example.
import {
  accountRule,
  addressOrRange,
  addressRule,
  anyText,
  databaseUrl,
  dnsServer,
  hostName,
  integer,
  list,
  logFormat,
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
  // Loopback, so that a first start exposes nothing.
  RESEAL_HOST: text('address to listen on', '0.0.0.0', '127.0.0.1'),
  // 0 takes any free port.
  RESEAL_PORT: integer('port to listen on', 8080, 0, 65_535),
  RESEAL_PUBLIC_URL: optional('the address callers use', 'https://certs.example.com/pki', publicUrl),
  RESEAL_DATABASE_URL: optional(
    'PostgreSQL instead of the embedded database',
    'postgres://user@db/reseal',
    databaseUrl,
  ),
  // Ten connections keep a small PostgreSQL (100 connections) free for several instances.
  RESEAL_DATABASE_CONNECTIONS: integer('connections to PostgreSQL at most', 10, 1, 500),
  RESEAL_SEAL_KEY: optional('seal key instead of a file', '"$(openssl rand -base64 32)"', sealKeyText),
  RESEAL_SEAL_KEY_FILE: optional('file of the seal key', '/run/secrets/reseal-seal.key', anyText),
  RESEAL_TLS_CERT_FILE: optional('serve HTTPS with this certificate chain', '/etc/reseal/tls.pem', anyText),
  RESEAL_TLS_KEY_FILE: optional('private key of that certificate', '/etc/reseal/tls.key', anyText),
  RESEAL_TRUSTED_PROXIES: list('proxies whose X-Forwarded-For is believed', '10.0.0.0/8,192.0.2.7', addressOrRange),
  RESEAL_DNS_SERVERS: list('resolvers to ask', '192.0.2.53,[2001:db8::53]:5353', dnsServer),
  RESEAL_DNS_PERSPECTIVES: list('further resolvers that must see a proof too', '192.0.2.54,192.0.2.55', dnsServer),
  RESEAL_ISSUER_NAMES: list('our names in CAA and persistent records', 'ca.example.com', hostName),
  RESEAL_DCV_ALLOW: list('private addresses where files may prove a name', '10.0.0.0/8', addressRule),
  // Nobody may listen on 80 on a laptop; in production it is 80.
  RESEAL_DCV_HTTP_PORT: integer('port of the files that prove a name', 80, 1, 65_535),
  // A value to publish must not serve for longer than that.
  RESEAL_PENDING_DAYS: integer('how long a certificate waits for proof', 30, 1, 30),
  RESEAL_CALLBACK_TEST_RATE: optional('callback tests of each account: at once, and refilled', '10/min', rate),
  // A test holds a socket and up to 16 KiB for at most ten seconds.
  RESEAL_CALLBACK_TESTS_AT_ONCE: integer('callback tests under way in this process', 64, 1, 10_000),
  RESEAL_CALLBACK_TESTS_PER_ACCOUNT: integer('callback tests under way for one account', 5, 1, 10_000),
  RESEAL_CALLBACK_TESTS_PER_HOST: integer('callback tests under way towards one host', 10, 1, 10_000),
  RESEAL_CALLBACK_SCHEDULE: optional('when a failed callback is repeated', '5s,30s,5min,30min,2h', schedule),
  // Each holds a socket for at most 15 seconds. Half of them are for first attempts.
  RESEAL_CALLBACKS_AT_ONCE: integer('callbacks under way in this process', 256, 2, 10_000),
  RESEAL_CALLBACKS_PER_ACCOUNT: integer('callbacks under way for one account', 32, 1, 10_000),
  RESEAL_CALLBACKS_PER_HOST: integer('callbacks under way towards one host', 64, 1, 10_000),
  RESEAL_CALLBACK_RETENTION_DAYS: integer('how long settled callbacks are kept', 90, 1, 3_650),
  RESEAL_CALLBACK_ROTATION_HOURS: integer('how long a replaced signing secret still signs', 24, 0, 8_760),
  RESEAL_CALLBACK_ALLOW: list(
    'private addresses callbacks may go to',
    '10.1.2.3:8443,ACCOUNT=10.9.0.0/16',
    accountRule,
  ),
  RESEAL_CALLBACK_DENY: list('public addresses callbacks may not go to', '192.0.2.0/24,[2001:db8::1]:443', addressRule),
  RESEAL_CALLBACK_ROOTS_FILE: optional('further roots to trust in receivers, as PEM', '/etc/reseal/roots.pem', anyText),
  RESEAL_SANDBOX_ALLOW: list('your own receivers; in the sandbox only', '127.0.0.1:9443', addressRule),
  RESEAL_METRICS_TOKEN: optional('bearer token for /metrics', 'a-long-random-text', token),
  RESEAL_PKI_URL: optional('plain HTTP address of issuer certificates and CRLs', 'http://pki.example.com', publicUrl),
  RESEAL_CA_NAME: text('organization in the names of the issuers made on first start', 'Acme', 'Reseal'),
  RESEAL_CA_ROOT_YEARS: integer('how long a new root lives', 20, 1, 40),
  RESEAL_CA_ISSUING_YEARS: integer('how long a new issuing authority lives', 10, 1, 20),
  RESEAL_PRODUCTS_FILE: optional('products of your own, as JSON', '/etc/reseal/products.json', anyText),
  // A request holds at most one body and one database connection; this bounds the memory of a flood.
  RESEAL_MAX_REQUESTS: integer('requests served at once; beyond that the answer is service_busy', 512, 1, 100_000),
  // Kubernetes kills after 30 s by default.
  RESEAL_SHUTDOWN_SECONDS: integer('how long a shutdown waits for requests under way', 20, 0, 3_600),
  RESEAL_LOG_FORMAT: optional('json for machines, text for people', 'json', logFormat),
} as const satisfies Record<string, Variable<unknown>>;

export type Values = { [Name in keyof typeof VARIABLES]: (typeof VARIABLES)[Name]['absent'] };
