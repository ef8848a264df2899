// The flow of every issuance: placing an order, reissuing, and issuing what waited for validation.
//
//   decide        read what the decision depends on, and decide; every refusal is thrown here
//   gather        check names and CAA, make keys: only if the decision needs it; nothing is locked meanwhile
//   write down    under the order's lock: if something the decision rests on has changed, decide again; then record what
//                 will be signed and take a lease, or enqueue the certificate to wait for validation
//   sign, finish  sign once; then certificate, order, revocations, event and audit row in one transaction
//
// A request that needs nothing from outside is decided in the transaction that writes it down.
import { setTimeout as sleep } from 'node:timers/promises';
import type { PreparedCertificate } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import {
  CHECK_LIMITS_MS,
  type CheckResults,
  checkNames,
  isClear,
  NOTHING_CHECKED,
  needsInstruction,
} from '../validation/check-names.ts';
import { changedSince, type Draft } from './draft.ts';
import { type Finish, finishIssuance, writeDown } from './issue-certificate.ts';
import { mayNeedKeys, NO_KEYS, type ObtainedKeys, obtainKeys, wipe } from './obtain-keys.ts';
import type { IssuanceTools } from './tools.ts';

/** What differs between placing, reissuing, and issuing what waited. */
export interface IssuanceSteps<Outcome> {
  /** False: no names to check and no keys to make, so the decision is made under the order's lock. */
  readonly needsEvidence: boolean;
  /** Given where names were checked before; the flow checks them otherwise. */
  readonly checked?: CheckResults;
  /** A draft, or an outcome that needs no certificate. `locked` is the order, if it is locked already. */
  decide(db: Repositories, locked?: Order | null): Promise<Draft | Settled<Outcome>>;
  /** Locks the order and returns it as it is now: null for a new one, `busy` while it is being signed. */
  lock(tx: Repositories, at: number): Promise<Order | null | 'busy'>;
  /** Stores the certificate to wait for validation. */
  enqueue(tx: Repositories, draft: Draft, results: CheckResults): Promise<Outcome>;
  /** Stores what the order must say while its certificate is being signed. Returns the order as it will be issued. */
  begin(tx: Repositories, draft: Draft): Promise<Order>;
  finish(draft: Draft): Pick<Finish, 'by' | 'action' | 'details' | 'idempotency'>;
  issued(certificateId: CertificateId): Outcome;
}

export interface Settled<Outcome> {
  readonly outcome: Outcome;
}

interface Evidence {
  /** The decision it was gathered for. */
  readonly draft: Draft;
  readonly results: CheckResults;
  readonly keys: ObtainedKeys;
}

const BUSY_PAUSE_MS = 20;
/** Together longer than a lease: a caller that waits behind a lost signer is served, not refused. */
const MAX_BUSY = 750;
/** How often evidence is gathered anew, because a new decision needs other evidence than the one before. */
const MAX_STALE = 5;

/** Calls `stepsFor` for every decision, so that each rests on what is stored now. */
export async function issue<Outcome>(
  tools: IssuanceTools,
  stepsFor: () => Promise<IssuanceSteps<Outcome>>,
): Promise<Outcome> {
  for (let stale = 0; stale < MAX_STALE; stale += 1) {
    const attempt = await issueOnce(tools, await stepsFor());
    if (attempt !== 'stale') return attempt.outcome;
  }
  throw new Refusal('service_busy', { retryAfterSeconds: 1 });
}

/** `stale`: a new decision needs other evidence than was gathered. */
async function issueOnce<Outcome>(
  tools: IssuanceTools,
  steps: IssuanceSteps<Outcome>,
): Promise<Settled<Outcome> | 'stale'> {
  const draft = steps.needsEvidence ? await steps.decide(tools.store) : null;
  if (draft && 'outcome' in draft) return draft;
  const evidence = draft && (await gather(tools, draft, steps.checked));
  try {
    for (let tries = 0; tries < MAX_BUSY; tries += 1) {
      const step = await tools.store.transaction((tx) => write(tools, tx, steps, evidence));
      if (step === 'stale' || (step !== 'busy' && 'outcome' in step)) return step;
      if (step !== 'busy') {
        await finishIssuance(tools, step.prepared, step.finish);
        return { outcome: steps.issued(step.prepared.id) };
      }
      await sleep(BUSY_PAUSE_MS);
    }
    throw new Refusal('service_busy', { retryAfterSeconds: 1 });
  } finally {
    if (evidence) wipe(evidence.keys);
  }
}

/** Makes keys last: they would be wasted if the certificate has to wait. */
async function gather(tools: IssuanceTools, draft: Draft, checked?: CheckResults): Promise<Evidence> {
  const { order, product, request, plan, provenBy } = draft;
  const { names, needsValidation: unproven, dcv } = plan;
  if (!checked && needsInstruction(unproven, dcv)) return { draft, results: NOTHING_CHECKED, keys: NO_KEYS };
  const { accountId } = order;
  const limitMs = CHECK_LIMITS_MS.issuing;
  const results = checked ?? (await checkNames(tools, { accountId, product, names, provenBy, dcv, limitMs }));
  if (!mayNeedKeys(request) || !isClear(results, { names, unproven })) return { draft, results, keys: NO_KEYS };
  return { draft, results, keys: await obtainKeys(tools, draft) };
}

interface Prepared {
  readonly prepared: PreparedCertificate;
  readonly finish: Finish;
}

/** One transaction. Without evidence the decision is made here. */
async function write<Outcome>(
  tools: IssuanceTools,
  tx: Repositories,
  steps: IssuanceSteps<Outcome>,
  evidence: Evidence | null,
): Promise<Prepared | Settled<Outcome> | 'stale' | 'busy'> {
  const at = tools.now();
  const locked = await steps.lock(tx, at);
  if (locked === 'busy') return 'busy';
  const holds = evidence && (await changedSince(evidence.draft, { tools, tx, order: locked, at })) === null;
  const draft = holds ? evidence.draft : await steps.decide(tx, locked);
  if ('outcome' in draft) return draft;
  if (evidence && !holds && !servesAlso(evidence, draft)) return 'stale';
  const { results = NOTHING_CHECKED, keys = NO_KEYS } = evidence ?? {};
  const { names, needsValidation: unproven } = draft.plan;
  if (!isClear(results, { names, unproven })) return { outcome: await steps.enqueue(tx, draft, results) };
  const order = await steps.begin(tx, draft);
  const prepared = await writeDown(tools, tx, draft, keys);
  return { prepared, finish: { ...steps.finish(draft), order, previous: draft.previous } };
}

/**
 * Whether evidence gathered a moment ago also serves the decision that replaced the one it was gathered for. Without this,
 * callers who reissue one order through several instances would overtake each other until one is refused.
 */
function servesAlso({ draft: before, keys }: Evidence, draft: Draft): boolean {
  const asked = ({ plan, provenBy }: Draft) =>
    JSON.stringify([plan.dcv, plan.names.map((name) => [name, provenBy.get(name) ?? null])]);
  const isKept = keys.encryption !== null && draft.request.keepsEncryptionKey;
  return (
    asked(before) === asked(draft) &&
    (keys.cloud === null || before.plan.publicKey.type === draft.plan.publicKey.type) &&
    (!isKept || before.previous?.id === draft.previous?.id)
  );
}
