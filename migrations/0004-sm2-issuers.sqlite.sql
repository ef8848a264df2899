-- Issuers on SM2. SQLite cannot change a check, so the table is made anew; those that refer to it do so by name.

create table issuer_with_sm2 (
  id text primary key,
  role text not null check (role in ('root', 'issuing')),
  key_type text not null check (key_type in ('p256', 'p384', 'rsa', 'sm2')),
  state text not null check (state in ('active', 'retired')),
  parent_id text references issuer (id),
  certificate text not null,
  sealed_key text,
  created_at bigint not null
);
insert into issuer_with_sm2 (id, role, key_type, state, parent_id, certificate, sealed_key, created_at)
  select id, role, key_type, state, parent_id, certificate, sealed_key, created_at from issuer;
drop table issuer;
alter table issuer_with_sm2 rename to issuer;
create unique index issuer_active on issuer (role, key_type) where state = 'active';
