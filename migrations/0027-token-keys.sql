-- Issuer keys in tokens (PKCS#11). Such an issuer has no sealed key but a sealed place: sealed so that only this service can
-- write it, because it names the module that is loaded.
alter table issuer add column sealed_key_uri text;
create index issuer_by_uri_seal_key on issuer (substr(sealed_key_uri, 4, 8), id);
