-- Certificates that wait for proof: when they are looked at next, and what was seen last. A row is here exactly as long
-- as its certificate is pending.

create table waiting_certificate (
  certificate_id text primary key references certificate (id),
  account_id text not null references account (id),
  order_id text not null references certificate_order (id),
  -- Whoever takes it up moves this on first: a checker that dies leaves it to the next one.
  due_at bigint not null,
  tries bigint not null,
  expires_at bigint not null,
  findings text not null
);

create index waiting_certificate_due on waiting_certificate (due_at);

insert into waiting_certificate
  select id, account_id, order_id, created_at, 0, created_at + 2592000000, '{}' from certificate where state = 'pending';
