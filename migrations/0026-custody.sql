-- Custody of issuers' keys: where each key is, keys whose certificate is still to come, certificates of other roots over
-- the same keys, and which backups hold what was in the store then.

-- Null: sealed in its row, or never here if there is none. Otherwise the place to which the key was moved.
alter table issuer add column key_place text;

-- A key whose request is signed elsewhere. It becomes an issuer with its certificate.
create table pending_issuer (
  id text primary key,
  key_type text not null,
  -- A JSON list.
  purposes text not null,
  -- PKCS#10.
  request text not null,
  sealed_key text not null,
  created_at bigint not null
);
create index pending_issuer_by_seal_key on pending_issuer (substr(sealed_key, 4, 8), id);

-- A certificate of another root over the key and the name of an issuer, with those above it.
create table alternate_chain (
  -- SHA-256 of the first certificate.
  fingerprint text primary key,
  issuer_id text not null references issuer (id),
  -- A JSON list of certificates, the root last.
  certificates text not null,
  created_at bigint not null
);
create index alternate_chain_by_issuer on alternate_chain (issuer_id, fingerprint);

create table taken_backup (
  -- Of the manifest.
  digest text primary key,
  taken_at bigint not null,
  file text not null
);

-- Acts on the authority itself are of no account.
create index audit_of_no_account on audit (id) where account_id is null;
