-- What external linters said about a serial number, written before it was signed or instead of its signature. `report` is
-- JSON: the findings, or why there was no answer.

create table lint_result (
  serial text primary key,
  certificate_id text not null,
  order_id text not null references certificate_order (id),
  account_id text not null references account (id),
  at bigint not null,
  verdict text not null check (verdict in ('passed', 'refused', 'failed')),
  linters text not null,
  report text not null
);

create index lint_result_refused on lint_result (at, serial) where verdict <> 'passed';
create index lint_result_at on lint_result (at, serial);
create index lint_result_order on lint_result (order_id);
