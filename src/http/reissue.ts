// POST /openapi/v3/orders/{id}/reissue: the wire's words become ours, and the answer carries the certificate's id.
import { hash } from 'node:crypto';
import Type from 'typebox';
import { canonicalJson } from '../domain/canonical-json.ts';
import { Refusal } from '../domain/errors.ts';
import { keySource } from '../domain/reissue-key.ts';
import type { ReissuePlan, ReissueRequest } from '../domain/reissue-request.ts';
import { Secret } from '../domain/secret.ts';
import { SIGN_HASHES, signHash } from '../domain/sign-hash.ts';
import type { Reissue } from '../usecases/reissue-certificate.ts';
import { callerOf } from './authentication.ts';
import { answers, success } from './reply.ts';
import type { Api } from './server.ts';

const optional = <T extends Type.TSchema>(schema: T) => Type.Optional(schema);

const Certificate = Type.Object({
  csr: optional(Type.String({ description: 'Certificate signing request, PEM or base64.' })),
  csr_from: optional(
    Type.String({ enum: ['', 'sign-cloud-csc'], description: 'Left out or empty: you hold the key.' }),
  ),
  common_name: optional(Type.String({ description: 'Required for SSL products.', examples: ['www.example.com'] })),
  dns_names: optional(
    Type.Array(Type.String(), { maxItems: 100, description: 'Left out, the current names are kept.' }),
  ),
  sign_hash: Type.String({ enum: [...SIGN_HASHES], examples: ['sha256'] }),
  un_modify_key: optional(Type.Boolean({ description: 'Acts on dual certificates of national cryptography only.' })),
  validity_days: optional(Type.Integer({ minimum: 1 })),
  custom_expiration_date: optional(Type.String({ description: 'YYYY-MM-DD, or an RFC 3339 date-time.' })),
});

const Body = Type.Object({
  certificate: Certificate,
  i_know_remove_domain_will_revoke_before_cert: optional(Type.Boolean({ description: 'Needed when a name goes.' })),
  i_know_will_revoke_last_cert: optional(
    Type.Boolean({ description: 'Needed where the product revokes the previous one.' }),
  ),
  dcv_method: optional(Type.String({ enum: ['dns', 'file', 'email', 'dns-persist'] })),
  persist_until: optional(Type.Integer({ minimum: 0, description: 'Unix seconds; 0 clears. With dns-persist only.' })),
  persist_policy: optional(Type.String({ enum: ['fqdn', 'wildcard'] })),
  dcv_scope: optional(Type.String({ enum: ['fqdn', 'base_domain'] })),
  sign_key_pin: optional(Type.String({ description: 'With sign-cloud-csc only.' })),
  sign_key_pin_tip: optional(Type.String({ description: 'With sign-cloud-csc only.' })),
});

const Answer = Type.Object({
  certificate: optional(Type.Object({ id: Type.String({ description: 'It may still be pending.' }) })),
  plan: optional(Type.Object({}, { additionalProperties: true, description: 'With dry_run only: what would happen.' })),
});

const MAX_IDEMPOTENCY_KEY = 255;

export function reissueOperation(api: Api, reissue: Reissue): void {
  api.post(
    '/orders/:id/reissue',
    {
      config: { action: 'reissue' },
      schema: {
        summary: 'Reissue the certificate of an order',
        tags: ['orders'],
        params: Type.Object({ id: Type.String() }),
        headers: Type.Object({ 'idempotency-key': optional(Type.String({ maxLength: MAX_IDEMPOTENCY_KEY })) }),
        querystring: Type.Object({
          dry_run: optional(Type.Unknown({ description: 'true: only say what would happen.' })),
        }),
        body: Body,
        response: answers(Answer),
      },
    },
    async (request) => {
      const dryRun = isDryRun(request.query.dry_run);
      const call = {
        caller: callerOf(request),
        orderId: request.params.id,
        request: inOurWords(request.body, dryRun),
        idempotency: idempotencyOf(request.headers['idempotency-key'], request.body),
        requestId: request.id,
        // Undefined once the caller has hung up.
        remote: request.ip ?? '',
      };
      if (dryRun) return success({ plan: viewOf(await reissue.plan(call)) });
      return success({ certificate: { id: await reissue.reissue(call) } });
    },
  );
}

/** An access code that is not used is not taken over either: so nothing can store or log it (contract reissue 7). */
function inOurWords(body: Type.Static<typeof Body>, dryRun: boolean): ReissueRequest {
  const { certificate } = body;
  if (certificate.sign_hash === '') {
    throw new Refusal('invalid_parameters', {
      field: 'certificate.sign_hash',
      reason: { en: 'certificate.sign_hash is missing.', zh: '缺少 certificate.sign_hash。' },
    });
  }
  const source = keySource(certificate.csr_from);
  const isCloudHeld = source === 'sign-cloud-csc';
  return {
    commonName: certificate.common_name,
    dnsNames: certificate.dns_names,
    csr: certificate.csr,
    keySource: source,
    pin: isCloudHeld && body.sign_key_pin !== undefined ? new Secret(body.sign_key_pin) : undefined,
    pinHint: isCloudHeld ? body.sign_key_pin_tip : undefined,
    signHash: signHash(certificate.sign_hash),
    keepsEncryptionKey: certificate.un_modify_key === true,
    validityDays: certificate.validity_days,
    customExpirationDate: certificate.custom_expiration_date,
    acceptsRemovalOfNames: body.i_know_remove_domain_will_revoke_before_cert === true,
    acceptsRevocationOfPrevious: body.i_know_will_revoke_last_cert === true,
    dcvMethod: body.dcv_method,
    dcvScope: body.dcv_scope,
    persistUntil: body.persist_until,
    persistPolicy: body.persist_policy,
    dryRun,
  };
}

/** Anything but `true` is refused: a typo must not revoke a certificate. */
function isDryRun(value: unknown): boolean {
  if (value === undefined) return false;
  if (value === 'true') return true;
  throw new Refusal('invalid_parameters', {
    field: 'dry_run',
    reason: { en: 'dry_run is true, or left out.', zh: 'dry_run 只能为 true，或不发送。' },
  });
}

function idempotencyOf(key: string | undefined, body: Type.Static<typeof Body>) {
  if (key === undefined) return null;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new Refusal('invalid_parameters', {
      field: 'Idempotency-Key',
      reason: {
        en: `Idempotency-Key has 1 to ${MAX_IDEMPOTENCY_KEY} printable characters.`,
        zh: `Idempotency-Key 须为 1 至 ${MAX_IDEMPOTENCY_KEY} 个可打印字符。`,
      },
    });
  }
  // An access code is short enough to be guessed from a hash, so it is no part of it: a repeated request with another
  // code is still the same request.
  const { sign_key_pin: _, sign_key_pin_tip: __, ...rest } = body;
  return { key, requestHash: hash('sha256', canonicalJson(rest)) };
}

const viewOf = (plan: ReissuePlan) => ({
  names: plan.names,
  added_names: plan.added,
  removed_names: plan.removed,
  needs_validation: plan.needsValidation,
  revokes: plan.revokes.map(({ certificateId, reason, afterHours }) => ({
    certificate_id: certificateId,
    reason,
    hours_after_issuance: afterHours,
  })),
  missing_consents: plan.missingConsents,
  issuer_id: plan.issuerId,
  not_before: new Date(plan.notBefore).toISOString(),
  not_after: new Date(plan.notAfter).toISOString(),
});
