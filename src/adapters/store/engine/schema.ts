// The tables, typed for Kysely: one schema for both engines. Columns are text or bigint (as number) only: see ADR 0017.
import type { Kysely, Transaction as KyselyTransaction } from 'kysely';
import type { AccountKind } from '../../../domain/access/account.ts';
import type { CredentialKind } from '../../../domain/access/credential.ts';
import type { AuditAction } from '../../../domain/access/ports.ts';
import type { AttemptReason, Delivery, DeliveryState } from '../../../domain/callbacks/delivery.ts';
import type { OutboxEvent } from '../../../domain/callbacks/ports.ts';
import type {
  CancellationReason,
  CertificateState,
  RevocationCause,
  RevocationReason,
} from '../../../domain/certificate/certificate.ts';
import type { DcvMethod, DcvScope, OrderStatus, PersistPolicy } from '../../../domain/certificate/order.ts';
import type { KeyType } from '../../../domain/certificate/public-key.ts';
import type { SignHash } from '../../../domain/certificate/sign-hash.ts';
import type { AccountId, CertificateId, OrderId } from '../../../domain/ids.ts';
import type { LintVerdict } from '../../../domain/issuance/lint.ts';
import type { Locale } from '../../../kernel/locale.ts';
import type { Sealed } from '../../seal/seal.ts';
import type { AcmeTables } from './acme-tables.ts';
import type { ConsoleTables } from './console-tables.ts';
import type { IssuerTables } from './issuer-tables.ts';

export interface Schema extends AcmeTables, ConsoleTables, IssuerTables {
  account: {
    id: AccountId;
    name: string;
    kind: AccountKind;
    locale: Locale;
    created_at: number;
    suspended_at: number | null;
    open_orders_limit: number | null;
    stored_bytes_limit: number | null;
    stored_bytes: number;
  };
  credential: {
    key_id: string;
    account_id: AccountId;
    kind: CredentialKind;
    secret_hash: string;
    created_at: number;
    expires_at: number | null;
    disabled_at: number | null;
    last_used_at: number | null;
  };
  audit: {
    id: string;
    at: number;
    account_id: AccountId | null;
    actor: string;
    action: AuditAction;
    subject: string;
    request_id: string | null;
    details: string;
  };
  certificate_order: {
    id: OrderId;
    account_id: AccountId;
    product_id: string;
    alternative_id: string | null;
    status: OrderStatus;
    common_name: string | null;
    names: string;
    dcv_method: DcvMethod | null;
    dcv_scope: DcvScope;
    persist_until: number | null;
    persist_policy: PersistPolicy;
    /** JSON. */
    subject: string | null;
    current_certificate_id: CertificateId | null;
    pending_certificate_id: CertificateId | null;
    term_ends_at: number;
    created_at: number;
    revision: number;
  };
  order_name: { name: string; order_id: OrderId; owner_id: AccountId | null };
  certificate: {
    id: CertificateId;
    account_id: AccountId;
    order_id: OrderId;
    state: CertificateState;
    created_at: number;
    pending_since: number | null;
    common_name: string | null;
    names: string;
    csr: string | null;
    spki: string;
    key_type: KeyType;
    key_bits: number;
    key_fingerprint: string;
    sign_hash: SignHash;
    validity_days: number | null;
    custom_expiration_date: string | null;
    will_revoke: string;
    issuer_id: string | null;
    serial: string | null;
    not_before: number | null;
    not_after: number | null;
    to_be_signed: string | null;
    prepared_at: number | null;
    lease_ends_at: number | null;
    der: string | null;
    issued_at: number | null;
    version: number | null;
    replaces_id: CertificateId | null;
    cloud_key_id: string | null;
    keeps_encryption_key: number;
  };
  lint_result: {
    serial: string;
    certificate_id: CertificateId;
    order_id: OrderId;
    account_id: AccountId;
    at: number;
    verdict: LintVerdict['kind'];
    linters: string;
    report: string;
  };
  signing: {
    order_id: OrderId;
    account_id: AccountId;
    certificate_id: CertificateId;
    created_at: number;
    common_name: string | null;
    names: string;
    spki: string;
    key_type: KeyType;
    key_bits: number;
    key_fingerprint: string;
    sign_hash: SignHash;
    cloud_key_id: string | null;
    issuer_id: string;
    serial: string;
    not_before: number;
    not_after: number;
    to_be_signed: string;
    prepared_at: number;
    lease_ends_at: number;
    key_reported: number;
    half_key_id: string | null;
    half_serial: string | null;
    half_to_be_signed: string | null;
    half_envelope: string | null;
  };
  encryption_certificate: {
    certificate_id: CertificateId;
    account_id: AccountId;
    key_id: string;
    serial: string;
    to_be_signed: string | null;
    der: string | null;
    envelope: string;
  };
  escrowed_key: {
    id: string;
    account_id: AccountId;
    order_id: OrderId;
    spki: string;
    key_fingerprint: string;
    sealed_key: Sealed;
    created_at: number;
  };
  cloud_key: {
    id: string;
    account_id: AccountId;
    spki: string;
    key_type: KeyType;
    key_bits: number;
    key_fingerprint: string;
    sealed_key: Sealed | null;
    hint: string | null;
    wrong_codes: number;
    locked_until: number;
    created_at: number;
    destroyed_at: number | null;
  };
  signing_grant: {
    token_hash: string;
    account_id: AccountId;
    key_id: string;
    hashes: string;
    sealed_key: Sealed;
    expires_at: number;
    certificate_id: CertificateId | null;
  };
  access_token: { token_hash: string; key_id: string; created_at: number; expires_at: number };
  waiting_certificate: {
    certificate_id: CertificateId;
    account_id: AccountId;
    order_id: OrderId;
    due_at: number;
    tries: number;
    expires_at: number;
    findings: string;
  };
  domain_authorization: { account_id: AccountId; name: string; method: string; validated_at: number };
  idempotency_key: {
    account_id: AccountId;
    order_id: OrderId;
    key: string;
    request_hash: string;
    certificate_id: CertificateId;
    created_at: number;
  };
  placement_key: {
    account_id: AccountId;
    key: string;
    request_hash: string;
    order_id: OrderId;
    certificate_id: CertificateId;
    created_at: number;
  };
  rate_limit: { key: string; full_at: number };
  reported_key: { account_id: AccountId; fingerprint: string; created_at: number };
  blocked_key: { fingerprint: string; reason: string; created_at: number };
  sealed_secret: { name: string; sealed: Sealed };
  setting: { name: string; value: string };
  instance: {
    id: string;
    name: string;
    seen_at: number;
    seal_keys: string;
    sealing_with: string;
    clock_ahead_ms: number;
  };
  migration: { number: number; name: string; sha256: string; applied_at: number };

  callback_settings: {
    account_id: AccountId;
    url: string;
    sealed_access_key: Sealed;
    sealed_signing_secret: Sealed;
    disabled: number;
    enabled_actions: string | null;
    updated_at: number;
    sealed_former_secret: Sealed | null;
    former_until: number | null;
  };
  outbox: {
    id: string;
    account_id: AccountId;
    order_id: OrderId;
    certificate_id: CertificateId;
    action: OutboxEvent['action'];
    created_at: number;
    order_status: OrderStatus;
    body: string;
    state: DeliveryState;
    reason: Delivery['reason'];
    is_new: number;
    in_order: number;
    due_at: number | null;
    lease: string | null;
    attempts: number;
    begun_at: number;
    tries: number;
    settled_at: number | null;
  };
  delivery_attempt: {
    event_id: string;
    number: number;
    at: number;
    ms: number;
    http_status: number | null;
    reason: AttemptReason | null;
    excerpt: string | null;
  };
  callback_lane: {
    account_id: AccountId;
    due_at: number | null;
    failures: number;
    trips: number;
    closed_until: number;
    ailing_since: number;
    in_order_until: number;
  };

  expiry_notice: { days: number; written_through: number; certificate_id: CertificateId | '' };

  cancellation: {
    certificate_id: CertificateId;
    account_id: AccountId;
    order_id: OrderId;
    reason: CancellationReason;
    at: number;
  };
  revocation: {
    certificate_id: CertificateId;
    account_id: AccountId;
    reason: RevocationReason;
    cause: RevocationCause;
    caused_by_id: CertificateId | null;
    due_at: number;
    revoked_at: number | null;
  };
  revoked_serial: {
    issuer_id: string;
    shard: number;
    serial: string;
    certificate_id: CertificateId | null;
    reason: RevocationReason;
    revoked_at: number;
    not_after: number;
    listed_in: number | null;
    crl_number: number | null;
    crl_published_at: number | null;
  };
  crl: {
    issuer_id: string;
    shard: number;
    number: number;
    this_update: number;
    next_update: number;
    entries: number;
    ended_before: number;
    addresses: string;
    der: string;
  };
  pki_address: { url: string; last_used_at: number };
  ocsp_responder: {
    serial: string;
    issuer_id: string;
    not_before: number;
    not_after: number;
    certificate: string | null;
    sealed_key: Sealed | null;
    created_at: number;
  };
}

export type Db = Kysely<Schema>;
export type Transaction = KyselyTransaction<Schema>;
