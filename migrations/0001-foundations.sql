-- Accounts, their credentials, the audit trail, the service's own sealed secrets and settings.
-- Written in the subset that SQLite and PostgreSQL share: text, bigint (milliseconds since 1970), JSON as text.

create table account (
  id text primary key,
  name text not null,
  kind text not null check (kind in ('standard', 'managed_pki')),
  locale text not null check (locale in ('en', 'zh-CN')),
  created_at bigint not null
);

create table credential (
  key_id text primary key,
  account_id text not null references account (id),
  kind text not null check (kind in ('standard', 'cloud_manager_token', 'lite_client_oauth', 'integration_key')),
  secret_hash text not null check (length(secret_hash) = 64),
  created_at bigint not null,
  expires_at bigint,
  disabled_at bigint,
  last_used_at bigint
);

create index credential_by_account on credential (account_id, key_id);

create table audit (
  id text primary key,
  at bigint not null,
  account_id text not null references account (id),
  actor text not null,
  action text not null,
  subject text not null,
  request_id text,
  details text not null
);

create index audit_by_account on audit (account_id, id);

create table sealed_secret (
  name text primary key,
  sealed text not null
);

create table setting (
  name text primary key,
  value text not null
);
