-- ACME: external account bindings, the accounts that were registered with them, and nonces that were used.

create table acme_binding (
  id text primary key,
  account_id text not null references account (id),
  name text not null,
  -- The MAC key, base64url, sealed.
  sealed_key text not null,
  -- JSON lists; null for no limit.
  products text,
  name_suffixes text,
  revokes_replaced bigint not null,
  is_reusable bigint not null,
  created_at bigint not null,
  expires_at bigint,
  disabled_at bigint,
  used_at bigint
);
create index acme_binding_by_account on acme_binding (account_id, id);
create index acme_binding_by_seal_key on acme_binding (substr(sealed_key, 4, 8), id);

create table acme_account (
  id text primary key,
  account_id text not null references account (id),
  binding_id text not null references acme_binding (id),
  status text not null,
  -- Of the key (RFC 7638): a key has one account.
  thumbprint text not null unique,
  spki text not null,
  -- A JSON list.
  contacts text not null,
  terms_agreed_at bigint,
  created_at bigint not null
);
create index acme_account_by_account on acme_account (account_id, id);
create index acme_account_by_binding on acme_account (binding_id);

-- Nothing is written when a nonce is handed out; a used one is remembered until it expires.
create table acme_used_nonce (
  id text primary key,
  expires_at bigint not null
);
create index acme_used_nonce_by_end on acme_used_nonce (expires_at);
