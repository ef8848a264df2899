-- Country, organization and organizational unit of a holder, as JSON; null where the order names none.

alter table certificate_order add column subject text;
