-- What issuers sign for: at most one for each purpose and type of key. The column state of issuer is read by the versions
-- before only, which sign with every active issuing authority whatever its purpose.

create table issuer_purpose (
  purpose text not null,
  key_type text not null,
  issuer_id text not null references issuer (id),
  -- A certificate policy that its operator chose; null where the chain leaves no choice.
  policy text,
  primary key (purpose, key_type)
);
create index issuer_purpose_by_issuer on issuer_purpose (issuer_id);

-- An imported authority, whose root key is elsewhere, keeps every purpose that it had. Those made here have no purpose:
-- successors are made when they are first needed.
insert into issuer_purpose (purpose, key_type, issuer_id)
  select every.purpose, issuer.key_type, issuer.id
  from issuer join issuer root on root.id = issuer.parent_id
  cross join (
    select 'public-tls' as purpose union all select 'private-tls' union all select 'client-auth'
    union all select 'code-signing' union all select 'document-signing'
  ) every
  where issuer.role = 'issuing' and issuer.state = 'active' and issuer.sealed_key is not null
    and root.sealed_key is null;

-- Beside imported roots there may be one of our own for each type of key.
drop index issuer_active;
create unique index issuer_own_root on issuer (key_type) where role = 'root' and state = 'active' and sealed_key is not null;
