// POST /openapi/v3/orders/{id}/reissue. The answer carries the certificate's id, or with dry_run the plan.
import Type from 'typebox';
import { invalid } from '../../domain/errors.ts';
import { MISSING_CONSENTS, MISSING_PERMISSIONS } from '../../domain/issuance/request.ts';
import { CHECK_PROBLEMS } from '../../domain/validation/check-result.ts';
import { inLocale, type Locale } from '../../kernel/locale.ts';
import type { DryRun, Reissue } from '../../usecases/issuance/reissue-certificate.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { localeOf } from '../front/failures.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, list, word } from '../front/values.ts';
import { RevocationReason } from '../revocation/revocation-view.ts';
import {
  CERTIFICATE_FIELDS,
  CertificateReference,
  ISSUANCE_ERRORS,
  optional,
  toRequest,
} from './certificate-fields.ts';
import { type DigestOf, IdempotencyHeaders, idempotencyOf } from './idempotency-key.ts';

const Body = Type.Object(
  {
    ...CERTIFICATE_FIELDS,
    i_know_remove_domain_will_revoke_before_cert: optional(Type.Boolean({ description: 'Needed when a name goes.' })),
    i_know_will_revoke_last_cert: optional(
      Type.Boolean({ description: 'Needed where the product revokes the previous one.' }),
    ),
  },
  { title: 'ReissueRequest' },
);

const Plan = Type.Object(
  {
    names: list(Type.String()),
    added_names: list(Type.String()),
    removed_names: list(Type.String()),
    needs_validation: list(Type.String(), { description: 'Names without a proof that can be used again.' }),
    revokes: list(
      Type.Object(
        { certificate_id: Type.String(), reason: RevocationReason, hours_after_issuance: Type.Integer() },
        { title: 'PlannedRevocation' },
      ),
    ),
    missing_consents: list(word('MissingConsent', MISSING_CONSENTS)),
    missing_permissions: list(word('MissingPermission', MISSING_PERMISSIONS)),
    caa_problems: list(
      Type.Object(
        { domain: Type.String(), result: word('CheckProblem', CHECK_PROBLEMS), message: Type.String() },
        { title: 'CaaProblem' },
      ),
      { description: 'Names that CAA does not permit now: the certificate would wait.' },
    ),
    issuer_id: Type.String({ description: 'Empty if the first certificate has to make the issuer.' }),
    not_before: DateTime,
    not_after: DateTime,
  },
  { title: 'ReissuePlan', description: 'With dry_run only: what would happen.' },
);
const Answer = Type.Object({ certificate: optional(CertificateReference), plan: optional(Plan) });

export function reissueOperation(api: Api, reissue: Reissue, digestOf: DigestOf): void {
  const idempotency = idempotencyOf(Body, digestOf);
  api.post(
    '/orders/:id/reissue',
    {
      config: { action: 'reissue' },
      schema: {
        operationId: 'reissueCertificate',
        summary: 'Reissue the certificate of an order',
        description:
          'The certificate is issued before the answer if every name is proven already; otherwise it is pending, and the earlier one stays valid. A dry run says what would happen, and which consents are missing.',
        tags: ['orders'],
        params: Type.Object({ id: Type.String({ description: 'The id of the order.' }) }),
        headers: IdempotencyHeaders,
        querystring: Type.Object({
          dry_run: optional(
            Type.Unknown({
              description: '`true`: only say what would happen, in `plan`.',
              meaning: { type: 'boolean', default: false },
            }),
          ),
        }),
        body: Body,
        errors: [
          ...ISSUANCE_ERRORS,
          'order_not_found',
          'order_state_conflict',
          'reissue_in_progress',
          'remove_domain_not_confirmed',
          'revoke_last_cert_not_confirmed',
          // A key that may reissue, but neither revoke nor certify a holder.
          'permission_denied',
          'product_not_found',
          'idempotency_key_reused',
        ],
        response: answers('Reissue', Answer),
      },
    },
    async (request) => {
      const dryRun = isDryRun(request.query);
      const call = {
        by: actorOf(request),
        credentialKind: callerOf(request).credential.kind,
        orderId: request.params.id,
        request: {
          ...toRequest(request.body),
          acceptsRemovalOfNames: request.body.i_know_remove_domain_will_revoke_before_cert === true,
          acceptsRevocationOfPrevious: request.body.i_know_will_revoke_last_cert === true,
          dryRun,
        },
        idempotency: idempotency(request.headers['idempotency-key'], request.body),
        // Undefined once the caller has disconnected.
        remote: request.ip ?? '',
      };
      if (dryRun) return success({ plan: viewOf(await reissue.plan(call), localeOf(request)) });
      request.certificateId = await reissue.reissue(call);
      return success({ certificate: { id: request.certificateId } });
    },
  );
}

/** Refuses any value but `true` and `false`: a typo must not revoke a certificate. */
function isDryRun(query: { readonly dry_run?: unknown }): boolean {
  const isMisspelt = Object.keys(query).some((name) => /dry/i.test(name) && name !== 'dry_run');
  if (!isMisspelt && (query.dry_run === undefined || query.dry_run === 'false')) return false;
  if (!isMisspelt && query.dry_run === 'true') return true;
  throw invalid('dry_run', 'dry_run is true or false, or left out.', 'dry_run 只能为 true 或 false，或不发送。');
}

const viewOf = ({ plan, caa }: DryRun, locale: Locale): Type.Static<typeof Plan> => ({
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
  missing_permissions: plan.missingPermissions,
  caa_problems: [...caa].flatMap(([domain, result]) =>
    result.isOk ? [] : [{ domain, result: result.problem, message: inLocale(result.reason, locale) }],
  ),
  issuer_id: plan.issuerId,
  not_before: new Date(plan.notBefore).toISOString(),
  not_after: new Date(plan.notAfter).toISOString(),
});
