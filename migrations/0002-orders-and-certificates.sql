-- Issuers, orders, certificates, and what an issuance leaves behind for those who come after it.

create table issuer (
  id text primary key,
  role text not null check (role in ('root', 'issuing')),
  key_type text not null check (key_type in ('p256', 'p384', 'rsa')),
  state text not null check (state in ('active', 'retired')),
  parent_id text references issuer (id),
  certificate text not null,
  -- Absent for a root whose key is kept elsewhere.
  sealed_key text,
  created_at bigint not null
);

-- Two instances that start at once make one set of issuers between them.
create unique index issuer_active on issuer (role, key_type) where state = 'active';

create table certificate_order (
  id text primary key,
  account_id text not null references account (id),
  product_id text not null,
  alternative_id text,
  status text not null check (status in
    ('domain_verifing', 'issuing', 'issued', 'reissuing', 'revoked', 'canceled', 'expired', 'rejected')),
  common_name text,
  names text not null,
  dcv_method text,
  dcv_scope text not null,
  persist_until bigint,
  persist_policy text not null,
  current_certificate_id text,
  pending_certificate_id text,
  -- The certificate that is being signed right now, and until when its signer is believed to be alive. One at a time.
  signing_certificate_id text,
  signing_until bigint,
  term_ends_at bigint not null,
  created_at bigint not null,
  revision bigint not null
);

create index certificate_order_by_account on certificate_order (account_id, id);
create unique index certificate_order_by_alternative on certificate_order (account_id, alternative_id)
  where alternative_id is not null;
create index certificate_order_signing on certificate_order (signing_until) where signing_until is not null;

create table certificate (
  id text primary key,
  account_id text not null references account (id),
  order_id text not null references certificate_order (id),
  state text not null check (state in ('pending', 'prepared', 'issued', 'voided', 'canceled')),
  created_at bigint not null,
  pending_since bigint,
  common_name text,
  names text not null,
  csr text,
  spki text not null,
  key_type text not null,
  key_bits bigint not null,
  key_fingerprint text not null,
  sign_hash text not null,
  validity_days bigint,
  custom_expiration_date text,
  will_revoke text not null,
  -- Written down before the signature: what a crash leaves behind says what was meant.
  issuer_id text references issuer (id),
  serial text unique,
  not_before bigint,
  not_after bigint,
  to_be_signed text,
  prepared_at bigint,
  lease_ends_at bigint,
  der text,
  issued_at bigint,
  version bigint,
  replaces_id text references certificate (id),
  unique (order_id, version)
);

create index certificate_by_order on certificate (order_id, id);
create index certificate_by_replaced on certificate (replaces_id) where replaces_id is not null;
create index certificate_by_key on certificate (key_fingerprint);

create table domain_authorization (
  account_id text not null references account (id),
  name text not null,
  method text not null,
  validated_at bigint not null,
  primary key (account_id, name, method)
);

create table revocation (
  certificate_id text primary key references certificate (id),
  account_id text not null references account (id),
  reason text not null check (reason in ('superseded', 'key_compromise', 'cessation_of_operation')),
  cause text not null check (cause in ('name_removed', 'previous_replaced', 'requested')),
  caused_by_id text references certificate (id),
  due_at bigint not null,
  revoked_at bigint
);

create table outbox (
  id text primary key,
  account_id text not null references account (id),
  order_id text not null references certificate_order (id),
  certificate_id text not null references certificate (id),
  action text not null,
  created_at bigint not null
);

create table idempotency_key (
  account_id text not null references account (id),
  order_id text not null references certificate_order (id),
  key text not null,
  request_hash text not null,
  certificate_id text not null references certificate (id),
  created_at bigint not null,
  primary key (account_id, order_id, key)
);

create table blocked_key (
  fingerprint text primary key,
  reason text not null,
  created_at bigint not null
);
