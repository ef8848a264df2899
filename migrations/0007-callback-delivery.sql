-- Events as they are delivered: what each says, how far its delivery has come, and every attempt at it.

alter table outbox add column order_status text not null default 'issued';
-- Written with the event, and never again: all attempts send these very characters.
alter table outbox add column body text not null default '';
-- What older versions wrote down was never sent. It is kept, so that an upgrade does not flood receivers with the past.
alter table outbox add column state text not null default 'suppressed'
  check (state in ('pending', 'delivered', 'failed', 'suppressed'));
alter table outbox add column reason text;
-- Nobody has looked at it yet: it is in no lane.
alter table outbox add column is_new bigint not null default 0;
-- Part of a range that was asked for again, and is sent one after the other.
alter table outbox add column in_order bigint not null default 0;
-- Pending: when it is tried next, or when the lease on it ends.
alter table outbox add column due_at bigint;
alter table outbox add column lease text;
alter table outbox add column attempts bigint not null default 0;
-- Since when it is being tried, and how often since then: to be sent again is to begin anew.
alter table outbox add column begun_at bigint not null default 0;
alter table outbox add column tries bigint not null default 0;
-- Not pending any more, since then.
alter table outbox add column settled_at bigint;

update outbox set reason = 'before_delivery', settled_at = created_at, begun_at = created_at,
  body = '{"action_type":"order","action_id":"' || action || '","order_id":"' || order_id
    || '","order_status":"issued","cert_id":"' || certificate_id || '","message":"'
    || (select case account.locale when 'zh-CN' then '订单的证书已签发。'
          else 'The certificate of the order has been issued.' end
        from account where account.id = outbox.account_id)
    || '"}';

create index outbox_new on outbox (is_new, begun_at, id) where state = 'pending';
create index outbox_due on outbox (account_id, in_order, due_at, id) where state = 'pending';
create index outbox_by_account on outbox (account_id, id);
create index outbox_by_state on outbox (account_id, state, id);
create index outbox_by_order on outbox (order_id, id);
create index outbox_settled on outbox (settled_at) where settled_at is not null;
create index outbox_failed on outbox (settled_at) where state = 'failed';

create table delivery_attempt (
  event_id text not null references outbox (id),
  number bigint not null,
  at bigint not null,
  ms bigint not null,
  http_status bigint,
  reason text,
  excerpt text,
  primary key (event_id, number)
);

-- One row for each account that ever had something to deliver, however much that is: whoever looks for work looks here.
create table callback_lane (
  account_id text primary key references account (id),
  -- Not later than the first of its events that waits; null when none does.
  due_at bigint,
  -- Attempts that failed since the last that did not, how often the lane was closed for it, and until when it is.
  failures bigint not null default 0,
  trips bigint not null default 0,
  closed_until bigint not null default 0,
  -- When it was first closed, of a lane that is not well.
  ailing_since bigint not null default 0,
  -- One of a range is under way until then at the latest; the next one waits for it.
  in_order_until bigint not null default 0
);

create index callback_lane_due on callback_lane (due_at) where due_at is not null;
create index callback_lane_ailing on callback_lane (account_id) where trips > 0;

alter table callback_settings add column sealed_former_secret text;
alter table callback_settings add column former_until bigint;
