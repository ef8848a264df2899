// The certificate that a request asks for, as a schema and as a CertificateRequest: shared by placing and reissuing.
import Type from 'typebox';
import { parseSignHash, SIGN_HASHES } from '../../domain/certificate/sign-hash.ts';
import { invalid } from '../../domain/errors.ts';
import { keySource } from '../../domain/issuance/key.ts';
import type { CertificateRequest } from '../../domain/issuance/request.ts';
import { Secret } from '../../domain/secret.ts';
import { nullable } from '../front/values.ts';

export const optional = <T extends Type.TSchema>(schema: T) => Type.Optional(schema);

const Certificate = Type.Object({
  csr: optional(Type.String({ description: 'Certificate signing request, PEM or base64.' })),
  csr_from: optional(
    Type.String({ enum: ['', 'sign-cloud-csc'], description: 'Left out or empty: you hold the key.' }),
  ),
  common_name: optional(Type.String({ description: 'Required for SSL products.', examples: ['www.example.com'] })),
  dns_names: optional(
    nullable(
      Type.Array(Type.String(), { maxItems: 100, description: 'Left out or null, the current names are kept.' }),
    ),
  ),
  sign_hash: Type.String({ enum: [...SIGN_HASHES], examples: ['sha256'] }),
  un_modify_key: optional(Type.Boolean({ description: 'Acts on dual certificates of national cryptography only.' })),
  validity_days: optional(Type.Integer({ minimum: 1 })),
  custom_expiration_date: optional(Type.String({ description: 'YYYY-MM-DD, or an RFC 3339 date-time.' })),
});

/** Fields of the body; each operation adds its own. */
export const CERTIFICATE_FIELDS = {
  certificate: Certificate,
  dcv_method: optional(Type.String({ enum: ['', 'dns', 'file', 'email', 'dns-persist'] })),
  persist_until: optional(Type.Integer({ minimum: 0, description: 'Unix seconds; 0 clears. With dns-persist only.' })),
  persist_policy: optional(Type.String({ enum: ['fqdn', 'wildcard'] })),
  dcv_scope: optional(Type.String({ enum: ['', 'fqdn', 'base_domain'] })),
  sign_key_pin: optional(Type.String({ description: 'With sign-cloud-csc only.' })),
  sign_key_pin_tip: optional(Type.String({ description: 'With sign-cloud-csc only.' })),
};
const CertificateBody = Type.Object(CERTIFICATE_FIELDS);

/** Clients that serialize zero values send an empty string for a field that they leave out (contract envelope 17). */
export const given = (text: string | undefined): string | undefined => text || undefined;

/** Drops an access code that is not used, so that nothing can store or log it (contract reissue 7). */
export function toRequest(body: Type.Static<typeof CertificateBody>): CertificateRequest {
  const { certificate } = body;
  if (certificate.sign_hash === '') {
    throw invalid('certificate.sign_hash', 'certificate.sign_hash is missing.', '缺少 certificate.sign_hash。');
  }
  const source = keySource(certificate.csr_from);
  const isCloudHeld = source === 'sign-cloud-csc';
  return {
    commonName: certificate.common_name,
    dnsNames: certificate.dns_names ?? undefined,
    csr: certificate.csr,
    keySource: source,
    pin: isCloudHeld && body.sign_key_pin !== undefined ? new Secret(body.sign_key_pin) : undefined,
    pinHint: isCloudHeld ? given(body.sign_key_pin_tip) : undefined,
    signHash: parseSignHash(certificate.sign_hash),
    keepsEncryptionKey: certificate.un_modify_key === true,
    validityDays: certificate.validity_days,
    customExpirationDate: given(certificate.custom_expiration_date),
    dcvMethod: given(body.dcv_method),
    dcvScope: given(body.dcv_scope),
    persistUntil: body.persist_until,
    persistPolicy: body.persist_policy,
  };
}
