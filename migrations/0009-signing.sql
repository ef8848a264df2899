-- What is being signed has a table of its own, so that a certificate's row and its indexes are written once. It has a row
-- per order at most: the signer's lease. Fewer indexes where every reissue pays for them.

-- Without references: a row lives for milliseconds, and is made from the order's.
create table signing (
  order_id text primary key,
  account_id text not null,
  certificate_id text not null,
  created_at bigint not null,
  common_name text,
  names text not null,
  spki text not null,
  key_type text not null,
  key_bits bigint not null,
  key_fingerprint text not null,
  sign_hash text not null,
  cloud_key_id text,
  issuer_id text not null,
  serial text not null unique,
  not_before bigint not null,
  not_after bigint not null,
  to_be_signed text not null,
  prepared_at bigint not null,
  lease_ends_at bigint not null,
  -- Its key was reported while it was being signed.
  key_reported bigint not null default 0,
  -- The encryption half of a dual certificate.
  half_key_id text,
  half_serial text,
  half_to_be_signed text,
  half_envelope text
);

insert into signing (order_id, account_id, certificate_id, created_at, common_name, names, spki, key_type, key_bits,
    key_fingerprint, sign_hash, cloud_key_id, issuer_id, serial, not_before, not_after, to_be_signed, prepared_at,
    lease_ends_at, half_key_id, half_serial, half_to_be_signed, half_envelope)
  select o.id, c.account_id, c.id, c.created_at, c.common_name, c.names, c.spki, c.key_type, c.key_bits,
    c.key_fingerprint, c.sign_hash, c.cloud_key_id, c.issuer_id, c.serial, c.not_before, c.not_after, c.to_be_signed,
    c.prepared_at, o.signing_until, h.key_id, h.serial, h.to_be_signed, h.envelope
  from certificate_order o
    join certificate c on c.id = o.signing_certificate_id
    left join encryption_certificate h on h.certificate_id = c.id
  where c.state = 'prepared';

delete from encryption_certificate where certificate_id in (select certificate_id from signing);
update certificate set state = 'pending', issuer_id = null, serial = null, not_before = null, not_after = null,
    to_be_signed = null, prepared_at = null, lease_ends_at = null
  where state = 'prepared' and pending_since is not null and id in (select certificate_id from signing);
delete from certificate where state = 'prepared' and id in (select certificate_id from signing);
-- Without a lease nobody would sign it.
update certificate set state = 'voided' where state = 'prepared';

drop index certificate_order_signing;
alter table certificate_order drop column signing_certificate_id;
alter table certificate_order drop column signing_until;

-- The constraint on (order_id, version) serves what this index served for issued ones.
drop index certificate_by_order;
create index certificate_unissued on certificate (order_id, id) where version is null;

-- Most events are delivered, or suppressed for an account without settings. The others are found by state.
drop index outbox_by_state;
create index outbox_unsettled on outbox (account_id, state, id) where state in ('pending', 'failed');
