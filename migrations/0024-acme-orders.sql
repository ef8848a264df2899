-- Orders that were placed over ACME, and the authorizations that each needs. The order itself is in certificate_order; it
-- has no certificate before a CSR was sent. No reference to the certificate: its row comes with the CSR.
create table acme_order (
  order_id text primary key references certificate_order (id),
  account_id text not null references account (id),
  acme_account_id text not null,
  -- As the client knows it: CAA may name it.
  acme_account_url text not null,
  certificate_id text not null,
  -- The certificate that this one replaces, as the client named it and by its id, and whether its issuance revokes that.
  replaces text,
  replaces_id text,
  revokes_replaced bigint not null,
  -- As requested.
  not_after text,
  expires_at bigint not null,
  -- 1 until a CSR was sent or the order ended.
  is_open bigint not null,
  problem text,
  keep_until bigint not null
);

create index acme_order_by_acme_account on acme_order (acme_account_id, order_id);
create unique index acme_order_by_certificate on acme_order (certificate_id);
create index acme_order_replacing on acme_order (replaces_id) where replaces_id is not null;
create index acme_order_open on acme_order (account_id) where is_open = 1;
create index acme_order_open_by_expiry on acme_order (expires_at) where is_open = 1;
create index acme_order_by_keep_until on acme_order (keep_until) where is_open = 0;

create table acme_authorization (
  id text primary key,
  order_id text not null references acme_order (order_id),
  account_id text not null references account (id),
  acme_account_id text not null,
  -- With `*.` for a wildcard.
  name text not null,
  state text not null,
  token text not null,
  -- The challenge that was answered, or by which the name was validated.
  method text,
  -- While it is being validated. A process that takes it up moves this on first.
  due_at bigint,
  validated_at bigint,
  problem text,
  expires_at bigint not null
);

create index acme_authorization_by_order on acme_authorization (order_id, id);
create index acme_authorization_due on acme_authorization (due_at) where due_at is not null;
create index acme_authorization_pending on acme_authorization (acme_account_id) where state = 'pending';
create index acme_authorization_by_expiry on acme_authorization (expires_at);
