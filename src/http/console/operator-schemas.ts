// Answers of the operators' routes of the console: schemas for the service, and the types that the pages are checked against.
import Type from 'typebox';
import { ACCOUNT_KINDS } from '../../domain/access/account.ts';
import { CREDENTIAL_KINDS, CREDENTIAL_STATES } from '../../domain/access/credential.ts';
import { DELIVERY_STATES, LANE_STATES } from '../../domain/callbacks/delivery.ts';
import { OPERATOR_ROLES } from '../../domain/console/session.ts';
import { ATTENTION_KINDS } from '../../domain/support/attention.ts';
import { FOUND_KINDS } from '../../domain/support/ports.ts';
import { LOCALES } from '../../kernel/locale.ts';
import { DateTime, list, nullable, word } from '../front/values.ts';

const Text = Type.String();
const Count = Type.Integer();
const Moment = nullable(DateTime);
const Details = Type.Unsafe<Readonly<Record<string, string | number | null>>>({
  type: 'object',
  additionalProperties: { type: ['string', 'number', 'null'] },
});
const NextAfter = nullable(Text);

export const Account = Type.Object({
  id: Text,
  name: Text,
  kind: word('ConsoleAccountKind', ACCOUNT_KINDS),
  locale: word('ConsoleLocale', LOCALES),
  created_at: DateTime,
  suspended_at: Moment,
});
export type Account = Type.Static<typeof Account>;

export const AccountList = Type.Object({ accounts: list(Account), next_after: NextAfter });
export type AccountList = Type.Static<typeof AccountList>;

export const Key = Type.Object({
  key_id: Text,
  kind: word('ConsoleKeyKind', CREDENTIAL_KINDS),
  state: word('ConsoleKeyState', CREDENTIAL_STATES),
  created_at: DateTime,
  expires_at: Moment,
  last_used_at: Moment,
});
export type Key = Type.Static<typeof Key>;

const Quota = Type.Object({ used: Type.Integer(), limit: Type.Integer(), is_default: Type.Boolean() });
export const AccountDetails = Type.Object({
  account: Account,
  keys: list(Key),
  quotas: Type.Object({ open_orders: Quota, stored_mib: Quota }),
});
export type AccountDetails = Type.Static<typeof AccountDetails>;

/** The secret is in this answer and nowhere else. */
export const IssuedKey = Type.Object({ key: Key, auth_key: Text, old: nullable(Key) });
export type IssuedKey = Type.Static<typeof IssuedKey>;

const Crl = Type.Object({
  shard: Count,
  number: Count,
  entries: Count,
  this_update: DateTime,
  next_update: DateTime,
});
export const Issuer = Type.Object({
  id: Text,
  role: word('ConsoleIssuerRole', ['root', 'issuing']),
  state: word('ConsoleIssuerState', ['active', 'retired', 'revoked']),
  subject: Text,
  purposes: list(Text),
  key_type: Text,
  has_key: Type.Boolean(),
  not_after: DateTime,
  fingerprint: Text,
  issued: Count,
  revoked: Count,
  crls: list(Crl),
  responder_not_after: Moment,
});
export type Issuer = Type.Static<typeof Issuer>;
export const Authority = Type.Object({ issuers: list(Issuer) });
export type Authority = Type.Static<typeof Authority>;

const NameProblem = Type.Object({ name: Text, problem: Text, reason: Text, at: DateTime });
export const WaitingOrder = Type.Object({
  order_id: Text,
  certificate_id: Text,
  account: Type.Object({ id: Text, name: Text, is_suspended: Type.Boolean() }),
  product: Text,
  status: Text,
  common_name: nullable(Text),
  names: list(Text),
  since: DateTime,
  tries: Count,
  next_check_at: DateTime,
  expires_at: DateTime,
  problems: list(NameProblem),
});
export type WaitingOrder = Type.Static<typeof WaitingOrder>;
export const WaitingList = Type.Object({ waiting: list(WaitingOrder), next_after: NextAfter });
export type WaitingList = Type.Static<typeof WaitingList>;

export const Lane = Type.Object({
  account: Type.Object({ id: Text, name: Text }),
  state: word('ConsoleLaneState', LANE_STATES),
  failures: Count,
  /** How many events wait; counted up to 1000. */
  pending: Count,
  degraded_since: Moment,
  closed_until: Moment,
  next_at: Moment,
});
export type Lane = Type.Static<typeof Lane>;
export const LaneList = Type.Object({ lanes: list(Lane), next_after: NextAfter });
export type LaneList = Type.Static<typeof LaneList>;

const Attempt = Type.Object({
  number: Count,
  at: DateTime,
  ms: Count,
  http_status: nullable(Count),
  reason: nullable(Text),
  excerpt: nullable(Text),
});
export const LaneDelivery = Type.Object({
  id: Text,
  order_id: Text,
  action: Text,
  created_at: DateTime,
  state: word('ConsoleDeliveryState', DELIVERY_STATES),
  reason: nullable(Text),
  next_attempt_at: Moment,
  attempts: list(Attempt),
});
export type LaneDelivery = Type.Static<typeof LaneDelivery>;
export const LaneDeliveries = Type.Object({
  account: Account,
  deliveries: list(LaneDelivery),
  next_after: NextAfter,
});
export type LaneDeliveries = Type.Static<typeof LaneDeliveries>;
export const Resent = Type.Object({ resent: Count, is_complete: Type.Boolean() });
export type Resent = Type.Static<typeof Resent>;
/** Of an act that has nothing to tell. */
export const Nothing = Type.Object({});

export const Entry = Type.Object({
  id: Text,
  at: DateTime,
  account_id: nullable(Text),
  actor: Text,
  action: Text,
  subject: Text,
  request_id: nullable(Text),
  details: Details,
});
export type Entry = Type.Static<typeof Entry>;
export const Audit = Type.Object({ audit: list(Entry), next_after: NextAfter });
export type Audit = Type.Static<typeof Audit>;

const StoryEvent = Type.Object({
  at: DateTime,
  event: Text,
  actor: nullable(Text),
  request_id: nullable(Text),
  details: Details,
});
export const Story = Type.Object({
  account: Type.Object({ id: Text, name: Text, suspended_at: Moment }),
  order: Type.Object({
    id: Text,
    product: Text,
    status: Text,
    alternative_id: nullable(Text),
    common_name: nullable(Text),
    names: list(Text),
    certificate_id: nullable(Text),
    pending_certificate_id: nullable(Text),
  }),
  waiting: nullable(Type.Object({ next_check_at: DateTime, expires_at: DateTime, problems: list(NameProblem) })),
  events: list(StoryEvent),
});
export type Story = Type.Static<typeof Story>;

export const Findings = Type.Object({
  found: list(
    Type.Object({
      kind: word('ConsoleFoundKind', FOUND_KINDS),
      text: Text,
      account_id: nullable(Text),
      order_id: nullable(Text),
      certificate_id: nullable(Text),
    }),
  ),
  request: list(Entry),
  stories: list(Story),
  further_orders: list(Text),
});
export type Findings = Type.Static<typeof Findings>;

export const Finding = Type.Object({
  check: Text,
  state: word('ConsoleFindingState', ['ok', 'warning', 'problem']),
  text: Text,
  remedy: nullable(Text),
});
export type Finding = Type.Static<typeof Finding>;
export const Doctor = Type.Object({ started_at: DateTime, ended_at: Moment, findings: list(Finding) });
export type Doctor = Type.Static<typeof Doctor>;

export const AttentionItem = Type.Object({
  kind: word('ConsoleAttentionKind', ATTENTION_KINDS),
  severity: word('ConsoleSeverity', ['problem', 'warning']),
  finding: nullable(Finding),
  count: nullable(Count),
  since: Moment,
});
export type AttentionItem = Type.Static<typeof AttentionItem>;
export const AttentionList = Type.Object({ attention: list(AttentionItem), examined_at: Moment });
export type AttentionList = Type.Static<typeof AttentionList>;

export const Point = Type.Object({
  at: DateTime,
  issued: Count,
  refused: Count,
  requests: Count,
  median_ms: nullable(Count),
  slow_ms: nullable(Count),
  waiting: nullable(Count),
  pending: nullable(Count),
});
export type Point = Type.Static<typeof Point>;
export const History = Type.Object({ points: list(Point) });
export type History = Type.Static<typeof History>;

export const Operator = Type.Object({
  name: Text,
  role: word('ConsoleRole', OPERATOR_ROLES),
  created_at: DateTime,
  disabled_at: Moment,
});
export const LiveSession = Type.Object({
  id: Text,
  /** An operator's name, or the id of a key. */
  owner: Text,
  kind: word('ConsoleOwnerKind', ['account', 'operator']),
  created_at: DateTime,
  last_seen_at: DateTime,
  expires_at: DateTime,
  network: Text,
});
export type LiveSession = Type.Static<typeof LiveSession>;
export const Operators = Type.Object({ operators: list(Operator), sessions: list(LiveSession) });
export type Operators = Type.Static<typeof Operators>;
