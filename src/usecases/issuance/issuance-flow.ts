// The flow of every issuance: placing an order, reissuing, and issuing what waited for validation.
//
//   decide        read what the decision depends on, and decide; every refusal is thrown here
//   gather        check names and CAA, make keys: only if the decision needs it; nothing is locked meanwhile
//   write down    record what will be signed and take a lease, in one statement that compares what the decision rests on
//                 with what is stored. If that is not enough, or something has changed, under the order's lock: decide
//                 again if needed; then write down, or enqueue the certificate
//   lint          only where the product requires it: show the bytes to the operator's linters
//   sign, finish  sign once; then certificate, order, revocations, event and audit row in one transaction
//
// A request that needs nothing from outside is decided in the transaction that writes it down.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Product } from '../../domain/catalog/products.ts';
import type { IssuerSlot } from '../../domain/certificate/authority.ts';
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
import { changedSince, type Draft, holdsWithoutReading } from './draft.ts';
import { conditionsOf, type Finish, finishIssuance, NotWrittenDown, prepare, writeDown } from './issue-certificate.ts';
import { passLintGate } from './lint-gate.ts';
import { mayNeedKeys, NO_KEYS, type ObtainedKeys, obtainKeys, wipe } from './obtain-keys.ts';
import type { IssuanceTools } from './tools.ts';

/** What differs between placing, reissuing, and issuing what waited. */
export interface IssuanceSteps<Outcome> {
  /** False: no names to check and no keys to make, so the decision is made under the order's lock. */
  readonly needsEvidence: boolean;
  /** Given where names were checked before; the flow checks them otherwise, or when that was too long ago. */
  readonly checked?: CheckedBefore;
  /** A draft, or an outcome that needs no certificate. `locked` is the order, if it is locked already. */
  decide(db: Repositories, locked?: Order | null): Promise<Draft | Settled<Outcome>>;
  /** Locks the order and returns it as it is now: null for a new one. Busy while another process is signing it. */
  lock(tx: Repositories): Promise<{ readonly order: Order | null; readonly isBusy: boolean }>;
  /** Stores the certificate to wait for validation. */
  enqueue(tx: Repositories, draft: Draft, results: CheckResults): Promise<Outcome>;
  /** The order as it will be issued. */
  planned(draft: Draft): Order;
  /** Stores what the order must say while its certificate is being signed, if anything. Returns `planned` as it is then. */
  begin?(tx: Repositories, draft: Draft): Promise<Order>;
  /** Whether `begin` has anything to store for this draft. Left out, it always has. */
  mustBegin?(draft: Draft): boolean;
  finish(draft: Draft): Pick<Finish, 'by' | 'action' | 'details' | 'idempotency'>;
  issued(certificateId: CertificateId): Outcome;
}

export interface CheckedBefore {
  readonly results: CheckResults;
  readonly at: number;
}

export interface Settled<Outcome> {
  readonly outcome: Outcome;
}

interface Evidence {
  readonly gatheredAt: number;
  /** The decision it was gathered for. */
  readonly draft: Draft;
  readonly results: CheckResults;
  readonly keys: ObtainedKeys;
}

const BUSY_PAUSE_MS = 20;
/** Together longer than a lease: a caller that waits behind a lost signer is served, not refused. For all decisions. */
const MAX_BUSY = 750;
/** How often evidence is gathered anew, because a new decision needs other evidence than the one before. */
const MAX_STALE = 5;

/** Calls `stepsFor` for every decision, so that each rests on what is stored now. */
export async function issue<Outcome>(
  tools: IssuanceTools,
  stepsFor: () => Promise<IssuanceSteps<Outcome>>,
): Promise<Outcome> {
  const patience = { busyTries: MAX_BUSY };
  for (let stale = 0; stale < MAX_STALE; stale += 1) {
    const attempt = await issueOnce(tools, await stepsFor(), patience);
    if (attempt !== 'stale') return attempt.outcome;
  }
  throw new Refusal('service_busy', { retryAfterSeconds: 1 });
}

/** `stale`: a new decision needs other evidence than was gathered. */
async function issueOnce<Outcome>(
  tools: IssuanceTools,
  steps: IssuanceSteps<Outcome>,
  patience: { busyTries: number },
): Promise<Settled<Outcome> | 'stale'> {
  const draft = steps.needsEvidence ? await steps.decide(tools.store) : null;
  if (draft && 'outcome' in draft) return draft;
  const evidence = draft && (await gather(tools, draft, steps.checked));
  const written = evidence && (await writeDownAlone(tools, steps, evidence));
  if (written) return await finishWith(tools, steps, written);
  try {
    for (; patience.busyTries > 0; patience.busyTries -= 1) {
      const step = await tools.store.transaction((tx) => write(tools, tx, steps, evidence));
      if (step === 'stale' || (step !== 'busy' && 'outcome' in step)) return step;
      if (step !== 'busy' && 'unmade' in step) {
        await tools.makeIssuer(step.unmade);
        return 'stale';
      }
      if (step !== 'busy') return await finishWith(tools, steps, step);
      await sleep(BUSY_PAUSE_MS);
    }
    throw new Refusal('service_busy', { retryAfterSeconds: 1 });
  } catch (error) {
    // Another process has retired the issuer: the request is decided again, with the one that signs now.
    if (error instanceof NotWrittenDown && (await tools.isRetired(error.issuerId, error.purpose))) return 'stale';
    throw error;
  } finally {
    if (evidence) wipe(evidence.keys);
  }
}

async function finishWith<Outcome>(
  tools: IssuanceTools,
  steps: IssuanceSteps<Outcome>,
  { product, prepared, finish }: Prepared,
): Promise<Settled<Outcome>> {
  if (product.requiresLint) await passLintGate(tools, prepared);
  await finishIssuance(tools, prepared, finish);
  return { outcome: steps.issued(prepared.id) };
}

/** Makes keys last: they would be wasted if the certificate has to wait. */
async function gather(tools: IssuanceTools, draft: Draft, before: CheckedBefore | undefined): Promise<Evidence> {
  const { order, product, request, plan, provenBy, acmeAccount } = draft;
  const { names, needsValidation: unproven, dcv } = plan;
  const now = tools.now();
  const checked = before && isFresh(before.at, now) ? before.results : undefined;
  const gatheredAt = checked && before ? before.at : now;
  const evidence = { draft, gatheredAt, keys: NO_KEYS };
  if (!checked && needsInstruction(unproven, dcv)) return { ...evidence, results: NOTHING_CHECKED };
  const { accountId } = order;
  const limitMs = CHECK_LIMITS_MS.issuing;
  const results =
    checked ?? (await checkNames(tools, { accountId, acmeAccount, product, names, provenBy, dcv, limitMs }));
  if (!mayNeedKeys(request) || !isClear(results, { names, unproven })) return { ...evidence, results };
  return { ...evidence, results, keys: await obtainKeys(tools, draft) };
}

interface Prepared {
  readonly product: Product;
  readonly prepared: PreparedCertificate;
  readonly finish: Finish;
}

/** Nearly every reissue: nothing but the lease has to be written, and one statement does it. Null if that is not so. */
async function writeDownAlone<Outcome>(
  tools: IssuanceTools,
  steps: IssuanceSteps<Outcome>,
  evidence: Evidence,
): Promise<Prepared | null> {
  const { draft, keys } = evidence;
  if ((steps.begin && (steps.mustBegin?.(draft) ?? true)) || keys !== NO_KEYS || !isComplete(evidence)) return null;
  if (tools.authority.unmade(draft.plan.issuerId) || !holdsWithoutReading(draft, { tools, at: tools.now() }))
    return null;
  const order = steps.planned(draft);
  const prepared = prepare(tools, draft, keys);
  if (!(await tools.store.signings.begin(prepared, conditionsOf(draft, order.revision)))) return null;
  return { product: draft.product, prepared, finish: { ...steps.finish(draft), order, previous: draft.previous } };
}

/** One transaction. Without evidence the decision is made here. */
async function write<Outcome>(
  tools: IssuanceTools,
  tx: Repositories,
  steps: IssuanceSteps<Outcome>,
  evidence: Evidence | null,
): Promise<Prepared | Settled<Outcome> | { readonly unmade: IssuerSlot } | 'stale' | 'busy'> {
  const at = tools.now();
  const { order: locked, isBusy } = await steps.lock(tx);
  // With evidence the request was decided before; without, a refusal or an earlier answer must not wait for the signer.
  if (isBusy && evidence) return 'busy';
  // A decision to wait is made again here: a proof may have arrived meanwhile.
  const holds =
    evidence && isComplete(evidence) && (await changedSince(evidence.draft, { tools, tx, order: locked, at })) === null;
  const draft = holds ? evidence.draft : await steps.decide(tx, locked);
  if ('outcome' in draft) return draft;
  if (isBusy) return 'busy';
  if (evidence && !holds && !servesAlso(evidence, draft, at)) return 'stale';
  const { results = NOTHING_CHECKED, keys = NO_KEYS } = evidence ?? {};
  const { names, needsValidation: unproven } = draft.plan;
  if (!isClear(results, { names, unproven })) return { outcome: await steps.enqueue(tx, draft, results) };
  // Its key is made outside of the transaction; then the request is decided again.
  const unmade = tools.authority.unmade(draft.plan.issuerId);
  if (unmade) return { unmade };
  const order = steps.begin ? await steps.begin(tx, draft) : steps.planned(draft);
  const prepared = await writeDown(tools, tx, draft, { order, keys });
  return { product: draft.product, prepared, finish: { ...steps.finish(draft), order, previous: draft.previous } };
}

const isComplete = ({ results, draft: { plan } }: Evidence): boolean =>
  isClear(results, { names: plan.names, unproven: plan.needsValidation });

/** Longer than a check on schedule may take. A pause of the machine must not let old answers of DNS be used. */
const MAX_EVIDENCE_AGE_MS = 90_000;
const isFresh = (gatheredAt: number, at: number): boolean => Math.abs(at - gatheredAt) <= MAX_EVIDENCE_AGE_MS;

/**
 * Whether evidence gathered a moment ago also serves the decision that replaced the one it was gathered for. Without this,
 * callers who reissue one order through several instances would overtake each other until one is refused.
 */
function servesAlso({ draft: before, keys, gatheredAt }: Evidence, draft: Draft, at: number): boolean {
  const asked = ({ plan, provenBy }: Draft) =>
    JSON.stringify([plan.dcv, plan.names.map((name) => [name, provenBy.get(name) ?? null])]);
  const isKept = keys.encryption !== null && draft.request.keepsEncryptionKey;
  return (
    isFresh(gatheredAt, at) &&
    asked(before) === asked(draft) &&
    (keys.cloud === null || before.plan.publicKey.type === draft.plan.publicKey.type) &&
    (!isKept || before.previous?.id === draft.previous?.id)
  );
}
