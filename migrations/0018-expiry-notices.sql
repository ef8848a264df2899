-- Notices of certificates that end soon, and the events that a pause of callbacks held back.

-- How far the notices of each threshold are written: every one that was due earlier, and of those due at that very time the
-- certificates up to this one. Moved in the transaction that writes the events.
create table expiry_notice (
  days bigint primary key,
  written_through bigint not null,
  certificate_id text not null
);
create index certificate_ending on certificate (not_after, id) where state = 'issued';

create index outbox_paused on outbox (account_id, id) where reason = 'disabled';
