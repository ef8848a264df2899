-- How far the clock of an instance is ahead of the database's, in milliseconds; negative if it is behind.
alter table instance add column clock_ahead_ms bigint not null default 0;
