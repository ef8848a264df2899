-- Access tokens of the signing API: short-lived, given to a key that has logged in. Only their digests are kept.

create table access_token (
  token_hash text primary key,
  key_id text not null references credential (key_id),
  created_at bigint not null,
  expires_at bigint not null
);

create index access_token_by_key on access_token (key_id, created_at);
create index access_token_by_end on access_token (expires_at);

-- The certificate that an authorization to sign was given under. Absent in those that an earlier version wrote.
alter table signing_grant add column certificate_id text references certificate (id);
