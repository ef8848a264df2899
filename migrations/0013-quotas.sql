-- Quotas per account: limits of its own, where the operator has set them, and what it has stored.

alter table account add column open_orders_limit bigint;
alter table account add column stored_bytes_limit bigint;
-- Of the certificates up to the one that the setting stored_through names. A chore counts the rest, old stores included.
alter table account add column stored_bytes bigint not null default 0;
