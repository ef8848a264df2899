-- The console: its operators, the single-use links they sign in with, and the sessions of operators and keys. Of links and
-- sessions only digests are kept.

create table console_operator (
  name text primary key,
  role text not null,
  created_at bigint not null,
  disabled_at bigint
);

create table console_link (
  token_hash text primary key,
  operator_name text not null references console_operator (name),
  created_at bigint not null,
  expires_at bigint not null
);
create index console_link_by_operator on console_link (operator_name, created_at);
create index console_link_by_end on console_link (expires_at);

create table console_session (
  id text primary key,
  token_hash text not null unique,
  -- One of the two: a session acts for a key or for an operator.
  key_id text references credential (key_id),
  operator_name text references console_operator (name),
  created_at bigint not null,
  last_seen_at bigint not null,
  expires_at bigint not null,
  -- Where it was begun: the IPv4 address, or the /64 of an IPv6 site.
  network text not null,
  check ((key_id is null) <> (operator_name is null))
);
create index console_session_by_key on console_session (key_id, id) where key_id is not null;
create index console_session_by_operator on console_session (operator_name, id) where operator_name is not null;
create index console_session_by_end on console_session (expires_at);
