-- Idempotency keys of placements. No reference to the certificate: its row comes with the issuance, after the order's.
create table placement_key (
  account_id text not null references account (id),
  key text not null,
  request_hash text not null,
  order_id text not null references certificate_order (id),
  certificate_id text not null,
  created_at bigint not null,
  primary key (account_id, key)
);

create index placement_key_by_age on placement_key (created_at);
