-- Orders and certificates by name, domain, product, status, expiry and revocation, within one account.

-- Beside each name stand, with a leading dot, the domains that it is or lies in, up to eight labels: a search by suffix is
-- a look-up, in the order of the orders. Unique, as the key is: so a planner needs no sort below them. The owner is NULL only in
-- rows of an instance of the version before.
alter table order_name add column owner_id text references account (id);
update order_name set owner_id = (select account_id from certificate_order where id = order_name.order_id);
with recursive domain (name, order_id, owner_id) as (
    select '.' || host, order_id, owner_id
    from (
      select case when name like '*.%' then substr(name, 3) else name end as host, order_id, owner_id from order_name
    ) as named
    where host <> '' and host not glob '*[^a-z0-9.-]*'
  union
    select substr(name, instr(substr(name, 2), '.') + 1), order_id, owner_id from domain
    where instr(substr(name, 2), '.') > 0
)
insert into order_name (name, order_id, owner_id)
  select name, order_id, owner_id from domain where length(name) - length(replace(name, '.', '')) <= 8;
create unique index order_name_by_owner on order_name (owner_id, name, order_id);

create unique index certificate_order_by_product on certificate_order (account_id, product_id, id);
-- Not of issued orders: a reissue of one writes no entry, and most orders are.
create index certificate_order_by_status on certificate_order (account_id, status, id) where status <> 'issued';

-- In place of the index by the certificate that was replaced, which the version within the order tells as well: a reissue
-- writes as many index entries as before.
drop index certificate_by_replaced;
create index certificate_by_expiry on certificate (account_id, not_after, id) where version is not null;
create index certificate_unissued_by_account on certificate (account_id, id) where version is null;
create index revocation_done on revocation (account_id, certificate_id) where revoked_at is not null;
