-- Why a pending certificate was never issued. A table of its own: a column would be written with every certificate.

create table cancellation (
  certificate_id text primary key references certificate (id),
  account_id text not null references account (id),
  order_id text not null references certificate_order (id),
  reason text not null,
  at bigint not null
);
create index cancellation_by_order on cancellation (order_id, certificate_id);
