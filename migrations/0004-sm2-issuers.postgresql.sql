-- Issuers on SM2.

alter table issuer drop constraint issuer_key_type_check;
alter table issuer add constraint issuer_key_type_check check (key_type in ('p256', 'p384', 'rsa', 'sm2'));
