-- Which instances serve this store, which seal keys each of them holds, and how to find values by the key that sealed them.

-- Refreshed every few seconds; a row that is not refreshed belongs to an instance that was lost.
create table instance (
  id text primary key,
  -- For people: host and process.
  name text not null,
  seen_at bigint not null,
  -- A JSON list of the ids of the keys it holds.
  seal_keys text not null,
  -- The key under which it seals.
  sealing_with text not null
);

-- A sealed value is v1.<key id of eight digits>.…
create index sealed_secret_by_seal_key on sealed_secret (substr(sealed, 4, 8), name);
create index issuer_by_seal_key on issuer (substr(sealed_key, 4, 8), id);
create index ocsp_responder_by_seal_key on ocsp_responder (substr(sealed_key, 4, 8), serial);
create index escrowed_key_by_seal_key on escrowed_key (substr(sealed_key, 4, 8), id);
create index cloud_key_by_seal_key on cloud_key (substr(sealed_key, 4, 8), id);
create index signing_grant_by_seal_key on signing_grant (substr(sealed_key, 4, 8), token_hash);
create index callback_settings_by_access_seal_key
  on callback_settings (substr(sealed_access_key, 4, 8), account_id);
create index callback_settings_by_signing_seal_key
  on callback_settings (substr(sealed_signing_secret, 4, 8), account_id);
create index callback_settings_by_former_seal_key
  on callback_settings (substr(sealed_former_secret, 4, 8), account_id);
