// The certificate that a request asks for, as a schema and as a CertificateRequest: shared by placing and reissuing.
import Type from 'typebox';
import { MAX_NAMES } from '../../domain/certificate/names.ts';
import { DCV_METHODS, DCV_SCOPES, PERSIST_POLICIES } from '../../domain/certificate/order.ts';
import { parseSignHash, SIGN_HASHES } from '../../domain/certificate/sign-hash.ts';
import { MAX_HINT, MAX_PIN, MIN_PIN } from '../../domain/cloud-keys/cloud-key.ts';
import { type ErrorCode, invalid } from '../../domain/errors.ts';
import { MAX_UNIX_SECONDS } from '../../domain/issuance/domain-validation.ts';
import { keySource } from '../../domain/issuance/key.ts';
import type { CertificateRequest, PlacementRequest } from '../../domain/issuance/request.ts';
import { Secret } from '../../domain/secret.ts';
import { nullable, text, textOrEmpty, word } from '../front/values.ts';

export const optional = <T extends Type.TSchema>(schema: T) => Type.Optional(schema);

export const SignHashWord = word(
  'SignHash',
  SIGN_HASHES,
  'The digest of the signature. In requests also in upper case, or with a hyphen.',
);

const CERTIFICATE = {
  csr: optional(Type.String({ description: 'Certificate signing request, PEM or base64.' })),
  csr_from: optional(
    Type.String({ enum: ['', 'sign-cloud-csc'], description: 'Left out or empty: you hold the key.' }),
  ),
  common_name: optional(Type.String({ description: 'Required for SSL products.', examples: ['www.example.com'] })),
  dns_names: optional(
    nullable(
      Type.Array(Type.String(), {
        maxItems: MAX_NAMES,
        description:
          'DNS names; IP addresses where the product certifies them. Left out or null, the current ones are kept.',
      }),
    ),
  ),
  un_modify_key: optional(Type.Boolean({ description: 'Acts on dual certificates of national cryptography only.' })),
  validity_days: optional(Type.Integer({ minimum: 1, description: 'Shortened to what product and term allow.' })),
  custom_expiration_date: optional(
    Type.String({ description: 'YYYY-MM-DD, or an RFC 3339 date-time.', examples: ['2027-01-31'] }),
  ),
};
const Certificate = Type.Object({ ...CERTIFICATE, sign_hash: text(SignHashWord) }, { title: 'CertificateRequest' });
export const FirstCertificate = Type.Object(
  { ...CERTIFICATE, sign_hash: optional(text(SignHashWord)) },
  {
    title: 'FirstCertificateRequest',
    description:
      'As in a reissue, but without sign_hash the certificate is signed with the default digest of the product.',
  },
);

export const Method = word('DcvMethod', DCV_METHODS, 'How control of a name is proven.');
export const Scope = word('DcvScope', DCV_SCOPES, 'Prove the name itself, or its registrable domain.');
export const Policy = word(
  'PersistPolicy',
  PERSIST_POLICIES,
  'What a dns-persist record authorizes: its own name, or the wildcard and the names below it too.',
);

/** Fields of the body; each operation adds its own. */
export const CERTIFICATE_FIELDS = {
  certificate: Certificate,
  dcv_method: optional(textOrEmpty(DCV_METHODS)),
  persist_until: optional(
    Type.Integer({
      format: 'int64',
      minimum: 0,
      maximum: MAX_UNIX_SECONDS,
      description: 'Unix seconds; 0 clears, left out keeps. With dns-persist only.',
    }),
  ),
  persist_policy: optional(text(Policy)),
  dcv_scope: optional(textOrEmpty(DCV_SCOPES)),
  sign_key_pin: optional(
    Type.String({ minLength: MIN_PIN, maxLength: MAX_PIN, description: 'With sign-cloud-csc only.' }),
  ),
  sign_key_pin_tip: optional(Type.String({ maxLength: MAX_HINT, description: 'With sign-cloud-csc only.' })),
};

/** The certificate that an order or a reissue results in. */
export const CertificateReference = Type.Object(
  { id: Type.String({ description: 'It may still be pending.' }) },
  { title: 'CertificateReference' },
);

/** Codes of every request for a certificate. */
export const ISSUANCE_ERRORS = [
  'invalid_csr',
  'invalid_domain',
  'invalid_sans',
  'invalid_dcv_method',
  'quota_exceeded',
  'request_too_fast',
  'lint_refused',
] as const satisfies readonly ErrorCode[];

const ReissuedBody = Type.Object(CERTIFICATE_FIELDS);
const PlacedBody = Type.Object({ ...CERTIFICATE_FIELDS, certificate: FirstCertificate });

/** Clients that serialize zero values send an empty string for a field that they leave out (contract envelope 17). */
export const given = (text: string | undefined): string | undefined => text || undefined;

export function toRequest(body: Type.Static<typeof ReissuedBody>): CertificateRequest {
  const { sign_hash } = body.certificate;
  if (sign_hash === '') {
    throw invalid('certificate.sign_hash', 'certificate.sign_hash is missing.', '缺少 certificate.sign_hash。');
  }
  return { ...withoutDigest(body), signHash: parseSignHash(sign_hash) };
}

export function toPlacement(body: Type.Static<typeof PlacedBody>): PlacementRequest {
  const signHash = given(body.certificate.sign_hash);
  return { ...withoutDigest(body), signHash: signHash === undefined ? undefined : parseSignHash(signHash) };
}

/** Drops an access code that is not used, so that nothing can store or log it (contract reissue 7). */
function withoutDigest(body: Type.Static<typeof PlacedBody>): Omit<CertificateRequest, 'signHash'> {
  const { certificate } = body;
  const source = keySource(certificate.csr_from);
  const isCloudHeld = source === 'sign-cloud-csc';
  return {
    commonName: certificate.common_name,
    dnsNames: certificate.dns_names ?? undefined,
    csr: certificate.csr,
    keySource: source,
    pin: isCloudHeld && body.sign_key_pin !== undefined ? new Secret(body.sign_key_pin) : undefined,
    pinHint: isCloudHeld ? given(body.sign_key_pin_tip) : undefined,
    keepsEncryptionKey: certificate.un_modify_key === true,
    validityDays: certificate.validity_days,
    customExpirationDate: given(certificate.custom_expiration_date),
    dcvMethod: given(body.dcv_method),
    dcvScope: given(body.dcv_scope),
    persistUntil: body.persist_until,
    persistPolicy: body.persist_policy,
  };
}
