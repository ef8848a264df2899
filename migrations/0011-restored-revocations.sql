-- A restored backup learns from published lists that a serial number is revoked whose certificate it does not have: such a
-- row has no certificate. The table is made anew in words that both engines share; nothing refers to it.
create table revoked_serial_restored (
  issuer_id text not null references issuer (id),
  shard bigint not null,
  serial text not null,
  -- Absent when the certificate was issued after the backup that was restored.
  certificate_id text references certificate (id),
  reason text not null,
  revoked_at bigint not null,
  -- Without a certificate: the end of its issuer, which no certificate outlives.
  not_after bigint not null,
  listed_in bigint,
  crl_number bigint,
  crl_published_at bigint,
  primary key (issuer_id, shard, serial)
);
insert into revoked_serial_restored (issuer_id, shard, serial, certificate_id, reason, revoked_at, not_after, listed_in,
    crl_number, crl_published_at)
  select issuer_id, shard, serial, certificate_id, reason, revoked_at, not_after, listed_in, crl_number, crl_published_at
  from revoked_serial;
drop table revoked_serial;
alter table revoked_serial_restored rename to revoked_serial;
create index revoked_serial_by_certificate on revoked_serial (certificate_id, serial);
create index revoked_serial_by_list on revoked_serial (issuer_id, shard, listed_in);
create index revoked_serial_unlisted on revoked_serial (issuer_id, shard) where listed_in is null;
