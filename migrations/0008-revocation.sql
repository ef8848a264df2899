-- Revocation as the world sees it: lists per issuer, who answers OCSP, and which serial number was listed when.

-- Further reasons and a further cause. The table is made anew in words that both engines share; nothing refers to it.
create table revocation_with_reasons (
  certificate_id text primary key references certificate (id),
  account_id text not null references account (id),
  reason text not null check (reason in
    ('superseded', 'key_compromise', 'cessation_of_operation', 'affiliation_changed', 'privilege_withdrawn')),
  cause text not null check (cause in ('name_removed', 'previous_replaced', 'requested', 'key_compromise')),
  caused_by_id text references certificate (id),
  due_at bigint not null,
  revoked_at bigint
);
insert into revocation_with_reasons (certificate_id, account_id, reason, cause, caused_by_id, due_at, revoked_at)
  select certificate_id, account_id, reason, cause, caused_by_id, due_at, revoked_at from revocation;
drop table revocation;
alter table revocation_with_reasons rename to revocation;
create index revocation_due on revocation (due_at) where revoked_at is null;
create index revocation_scheduled on revocation (account_id) where revoked_at is null;

-- One row for each serial number that is revoked: a dual certificate has two.
create table revoked_serial (
  issuer_id text not null references issuer (id),
  shard bigint not null,
  serial text not null,
  certificate_id text not null references certificate (id),
  reason text not null,
  revoked_at bigint not null,
  not_after bigint not null,
  -- The list that shows it as it is now; absent as long as none does.
  listed_in bigint,
  -- The first list that showed it at all.
  crl_number bigint,
  crl_published_at bigint,
  primary key (issuer_id, shard, serial)
);
create index revoked_serial_by_certificate on revoked_serial (certificate_id, serial);
create index revoked_serial_by_list on revoked_serial (issuer_id, shard, listed_in);
create index revoked_serial_unlisted on revoked_serial (issuer_id, shard) where listed_in is null;

-- The last published list of each shard.
create table crl (
  issuer_id text not null references issuer (id),
  shard bigint not null,
  number bigint not null,
  this_update bigint not null,
  next_update bigint not null,
  entries bigint not null,
  -- What had ended before this moment was left out.
  ended_before bigint not null,
  -- The addresses it names as its own.
  addresses text not null,
  der text not null,
  primary key (issuer_id, shard)
);

-- Every address that certificates were ever told to find their lists at.
create table pki_address (
  url text primary key,
  last_used_at bigint not null
);

-- Who answers OCSP in the name of an issuer. The serial number is written down before the certificate is signed.
create table ocsp_responder (
  serial text primary key,
  issuer_id text not null references issuer (id),
  not_before bigint not null,
  not_after bigint not null,
  certificate text,
  sealed_key text,
  created_at bigint not null
);
create index ocsp_responder_by_issuer on ocsp_responder (issuer_id, not_after);

create index certificate_voided on certificate (id) where state = 'voided';
create index escrowed_key_by_fingerprint on escrowed_key (key_fingerprint);

-- Keys that an account has reported as compromised: blocked for it, and for nobody else on its word alone.
create table reported_key (
  account_id text not null references account (id),
  fingerprint text not null,
  created_at bigint not null,
  primary key (account_id, fingerprint)
);
