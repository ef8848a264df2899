// For the operator, across accounts: what a text that a customer quotes may stand for, and facts about the whole store.
import type { Account } from '../access/account.ts';
import type { Lane } from '../callbacks/delivery.ts';
import type { QueueFacts } from '../callbacks/ports.ts';
import type { PublicIssuer } from '../certificate/authority.ts';
import { spelledName } from '../certificate/names.ts';
import type { OrderStatus } from '../certificate/order.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Listed, Page } from '../page.ts';
import type { CrlHead } from '../revocation/ports.ts';
import type { WaitingCertificate } from '../validation/ports.ts';
import type { ClockFacts } from './clock-facts.ts';

/** What was found: where it belongs, and what it is. */
export interface Found {
  readonly kind: FoundKind;
  /** As it is stored. */
  readonly text: string;
  /** Null for what belongs to no account. */
  readonly accountId: AccountId | null;
  readonly orderId: OrderId | null;
  readonly certificateId: CertificateId | null;
}

export const FOUND_KINDS = [
  'account',
  'key',
  'order',
  'alternative_id',
  'certificate',
  'serial',
  'key_fingerprint',
  'blocked_key',
  'name',
  'delivery',
  'cloud_key',
] as const;
export type FoundKind = (typeof FOUND_KINDS)[number];

export interface Finder {
  /** At most `limit` of each kind and spelling, each looked up by an index; of a name the newest orders. */
  find(spellings: Spellings, limit: number): Promise<Found[]>;
}

/** The forms under which a text may be stored. */
export interface Spellings {
  readonly text: string;
  /** Hexadecimal, lower case, without separators and leading zero bytes; null for other texts. */
  readonly hex: string | null;
  /** As a DNS name or an address, and the wildcard that covers it; the text itself for the name of a person or an organisation. */
  readonly names: readonly string[];
}

const SEPARATORS = /[\s:-]/g;

export function spellingsOf(given: string): Spellings {
  const text = given.trim();
  const digits = text.toLowerCase().replace(/^0x/, '').replace(SEPARATORS, '');
  const isHex = /^[0-9a-f]{2,64}$/.test(digits);
  const whole = digits.padStart(digits.length + (digits.length % 2), '0');
  const name = spelledName(text);
  const wildcard = name.replace(/^[^.]+/, '*');
  return {
    text,
    hex: isHex ? (whole.length === 64 ? whole : whole.replace(/^(00)+/, '')) : null,
    names: [...new Set([name, wildcard, text])],
  };
}

/** A certificate that waits for validation, with the words that people know it by. */
export interface WaitingOrder extends WaitingCertificate {
  readonly accountName: string;
  readonly isSuspended: boolean;
  readonly productId: string;
  readonly status: OrderStatus;
  readonly commonName: string | null;
  readonly names: readonly string[];
}

/** The lane of an account, with what waits in it, counted up to a bound. */
export interface LaneOverview {
  readonly lane: Omit<Lane, 'hasInOrder'>;
  readonly accountName: string;
  /** When it is looked at next; null while nothing waits. */
  readonly dueAt: number | null;
  readonly pending: number;
}

/** Lists over all accounts. Each page is a range of an index. */
export interface AllAccounts {
  /** The newest first, of which the name contains the text, whatever the case of its ASCII letters. */
  accounts(text: string, page: Page): Promise<Listed<Account>>;
  /** Those that wait longest first. */
  waiting(page: Page): Promise<Listed<WaitingOrder>>;
  lanes(onlyDegraded: boolean, page: Page): Promise<Listed<LaneOverview>>;
}

/** How many there are, counted up to a bound, and the moment of the oldest. */
export interface Backlog {
  readonly count: number;
  readonly oldestAt: number | null;
}

export interface FactsReader {
  waiting(): Promise<Backlog>;
  overdueRevocations(now: number): Promise<Backlog>;
  /** Of the responder that lives longest; undefined if the issuer has none. */
  responderExpiry(issuerId: string): Promise<number | undefined>;
  sizeBytes(): Promise<number>;
  walBytes(): number | null;
}

export interface IssuerFacts extends Pick<PublicIssuer, 'id' | 'role' | 'keyType'> {
  readonly state: 'active' | 'retired';
  readonly notAfter: number;
}

export interface StoreFacts {
  readonly now: number;
  readonly waiting: Backlog;
  readonly overdue: Backlog;
  readonly issuers: readonly IssuerFacts[];
  readonly responders: readonly { readonly issuerId: string; readonly notAfter: number }[];
  readonly crls: readonly Pick<CrlHead, 'issuerId' | 'thisUpdate' | 'nextUpdate'>[];
  /** When the next list of each offline root should be signed. */
  readonly offlineLists: readonly { readonly issuerId: string; readonly dueAt: number }[];
  readonly queue: QueueFacts;
  readonly sizeBytes: number;
  /** Null where the database bounds it by itself. */
  readonly walBytes: number | null;
  readonly lastBackupAt: number | null;
  readonly clock: ClockFacts;
}
