-- Suspended accounts, an audit log that can be searched, and indexes by which old rows are found and deleted.

alter table account add column suspended_at bigint;
-- What a resumed account waits for becomes due at once.
create index waiting_certificate_by_account on waiting_certificate (account_id);

-- Acts that concern no single account, such as the import of an issuer, have no account_id.
alter table audit alter column account_id drop not null;

-- Every name that an order has carried or asked for, for look-ups across accounts.
create table order_name (
  name text not null,
  order_id text not null references certificate_order (id),
  primary key (name, order_id)
);
insert into order_name (name, order_id)
  select distinct name.value, certificate_order.id from certificate_order, jsonb_array_elements_text(names::jsonb) as name (value);
insert into order_name (name, order_id)
  select distinct name.value, certificate.order_id from certificate, jsonb_array_elements_text(names::jsonb) as name (value)
  on conflict (name, order_id) do nothing;
insert into order_name (name, order_id)
  select common_name, id from certificate_order where common_name is not null
  on conflict (name, order_id) do nothing;

create index certificate_order_by_alternative_id on certificate_order (alternative_id) where alternative_id is not null;

create index idempotency_key_by_age on idempotency_key (created_at);
create index rate_limit_by_end on rate_limit (full_at);
