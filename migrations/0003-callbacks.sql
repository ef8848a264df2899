-- What accounts save about their callbacks, and how fast they may test them.

create table callback_settings (
  account_id text primary key references account (id),
  url text not null,
  sealed_access_key text not null,
  sealed_signing_secret text not null,
  disabled bigint not null check (disabled in (0, 1)),
  -- A JSON list; absent means all.
  enabled_actions text,
  updated_at bigint not null
);

-- One number per bucket: when its tokens would all be back, had nobody taken more.
create table rate_limit (
  key text primary key,
  full_at bigint not null
);
