-- Suspended accounts, an audit log that can be searched, and indexes by which old rows are found and deleted.

alter table account add column suspended_at bigint;
-- What a resumed account waits for becomes due at once.
create index waiting_certificate_by_account on waiting_certificate (account_id);

-- Acts that concern no single account, such as the import of an issuer, have no account_id. SQLite cannot drop a NOT
-- NULL, so the table is made anew; no table refers to it.
create table audit_of_all (
  id text primary key,
  at bigint not null,
  account_id text references account (id),
  actor text not null,
  action text not null,
  subject text not null,
  request_id text,
  details text not null
);
insert into audit_of_all (id, at, account_id, actor, action, subject, request_id, details)
  select id, at, account_id, actor, action, subject, request_id, details from audit;
drop table audit;
alter table audit_of_all rename to audit;
create index audit_by_account on audit (account_id, id);

-- Every name that an order has carried or asked for, for look-ups across accounts.
create table order_name (
  name text not null,
  order_id text not null references certificate_order (id),
  primary key (name, order_id)
);
insert into order_name (name, order_id)
  select distinct name.value, certificate_order.id from certificate_order, json_each(certificate_order.names) as name;
insert into order_name (name, order_id)
  select distinct name.value, certificate.order_id from certificate, json_each(certificate.names) as name where true
  on conflict (name, order_id) do nothing;
insert into order_name (name, order_id)
  select common_name, id from certificate_order where common_name is not null
  on conflict (name, order_id) do nothing;

create index certificate_order_by_alternative_id on certificate_order (alternative_id) where alternative_id is not null;

create index idempotency_key_by_age on idempotency_key (created_at);
create index rate_limit_by_end on rate_limit (full_at);
