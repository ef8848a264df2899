-- Keys that the service holds: escrowed ones of encryption certificates, and cloud-held ones that sign.

create table escrowed_key (
  id text primary key,
  account_id text not null references account (id),
  order_id text not null references certificate_order (id),
  spki text not null,
  key_fingerprint text not null,
  sealed_key text not null,
  created_at bigint not null
);

-- The other half of a dual certificate. Its state is that of the certificate it belongs to.
create table encryption_certificate (
  certificate_id text primary key references certificate (id),
  account_id text not null references account (id),
  key_id text not null references escrowed_key (id),
  serial text not null unique,
  to_be_signed text,
  der text,
  -- The private key, readable with the signing key of the certificate only.
  envelope text not null
);

create index encryption_certificate_by_key on encryption_certificate (key_id);

create table cloud_key (
  id text primary key,
  account_id text not null references account (id),
  spki text not null,
  key_type text not null,
  key_bits bigint not null,
  key_fingerprint text not null,
  -- Locked under the access code, and sealed; absent once the key is destroyed.
  sealed_key text,
  hint text,
  wrong_codes bigint not null,
  locked_until bigint not null,
  created_at bigint not null,
  destroyed_at bigint
);

create index cloud_key_by_account on cloud_key (account_id, id);

create table signing_grant (
  token_hash text primary key,
  account_id text not null references account (id),
  key_id text not null references cloud_key (id),
  hashes text not null,
  sealed_key text not null,
  expires_at bigint not null
);

create index signing_grant_by_end on signing_grant (expires_at);

alter table certificate add column cloud_key_id text references cloud_key (id);
alter table certificate add column keeps_encryption_key bigint not null default 0;

create index certificate_by_cloud_key on certificate (cloud_key_id) where cloud_key_id is not null;
