// The signing API in our OpenAPI document: requests, answers and errors of version 2. Version 1 is left out, because its
// operations are the same under older names. Requests are not validated by these schemas: csc-wire.ts knows the phrases
// that the specification wants, takes older names of parameters, and takes null for an absent one.
import type { FastifySchema } from 'fastify';
import Type from 'typebox';
import { CERTIFICATE_STATUSES, MAX_SIGNATURES } from '../../domain/cloud-keys/cloud-signing.ts';
import { nullable } from '../front/values.ts';
import { ALL_ALGORITHMS, type CscVersion, HASH_OIDS, PIN } from './csc-wire.ts';

const absent = <T extends Type.TSchema>(schema: T) => Type.Optional(nullable(schema));
const Text = Type.String({ minLength: 1 });
const Flag = Type.Boolean({ default: false });
const Texts = Type.Array(Type.String());

const Lang = absent(
  Type.String({ minLength: 1, description: 'A language tag; left out or not known, `Accept-Language` decides.' }),
);
const CredentialId = Type.String({ minLength: 1, description: 'The id of a cloud-held key.' });
const DETAIL = {
  certificates: absent(Type.String({ enum: ['single', 'none', 'chain'], default: 'single' })),
  certInfo: absent(Flag),
  authInfo: absent(Flag),
  lang: Lang,
};
const Hashes = Type.Array(Type.String({ minLength: 1 }), {
  minItems: 1,
  maxItems: MAX_SIGNATURES,
  description: 'Digests in base64. `hash` is read where it is absent.',
});
const HashOid = Type.String({ enum: HASH_OIDS, description: '`hashAlgo` is read where it is absent.' });

const CREDENTIAL = {
  key: Type.Object({
    status: Type.String({ enum: ['enabled', 'disabled'] }),
    algo: Texts,
    len: Type.Integer(),
    curve: Type.Optional(Type.String()),
  }),
  cert: Type.Optional(
    Type.Object({
      status: Type.String({ enum: [...CERTIFICATE_STATUSES] }),
      certificates: Type.Optional(Texts),
      issuerDN: Type.Optional(Type.String()),
      subjectDN: Type.Optional(Type.String()),
      serialNumber: Type.Optional(Type.String()),
      validFrom: Type.Optional(Type.String()),
      validTo: Type.Optional(Type.String()),
    }),
  ),
  auth: Type.Object({
    mode: Type.String({ enum: ['explicit'] }),
    expression: Type.Optional(Type.String()),
    objects: Type.Optional(
      Type.Array(
        Type.Object({
          type: Type.String(),
          id: Type.String(),
          format: Type.String(),
          label: Type.String(),
          description: Type.Optional(Type.String({ description: 'The hint of the access code.' })),
        }),
      ),
    ),
  }),
  SCAL: Type.String(),
  multisign: Type.Integer(),
  lang: Type.String(),
};

const ANSWERS = {
  getSigningInfo: Type.Object(
    {
      specs: Type.String(),
      name: Type.String(),
      logo: Type.String(),
      region: Type.String(),
      lang: Type.String(),
      description: Type.String(),
      authType: Texts,
      methods: Texts,
      supportedHashTypes: Texts,
      asynchronousOperationMode: Type.Boolean(),
      validationInfo: Type.Boolean(),
      signAlgorithms: Type.Object({ algos: Texts }),
      signature_formats: Type.Object({ formats: Texts, envelope_properties: Type.Array(Texts) }),
      conformance_levels: Texts,
    },
    { title: 'SigningInfo' },
  ),
  logInToSign: Type.Object({ access_token: Type.String(), expires_in: Type.Integer() }, { title: 'AccessToken' }),
  listSigningCredentials: Type.Object(
    {
      credentialIDs: Texts,
      credentialInfos: Type.Optional(
        Type.Array(Type.Object({ credentialID: Type.String(), ...CREDENTIAL }, { title: 'ListedCredential' })),
      ),
      onlyValid: Type.Optional(Type.Boolean()),
      nextPageToken: Type.Optional(Type.String()),
    },
    { title: 'SigningCredentialList' },
  ),
  getSigningCredential: Type.Object(CREDENTIAL, { title: 'SigningCredential' }),
  authorizeSigning: Type.Object(
    { SAD: Type.String({ description: 'Signature activation data.' }), expiresIn: Type.Integer() },
    { title: 'SigningAuthorization' },
  ),
  signHashes: Type.Object({ signatures: Texts }, { title: 'Signatures' }),
};

const BODIES = {
  getSigningInfo: Type.Object({ lang: Lang }, { title: 'SigningInfoRequest' }),
  logInToSign: Type.Object({ rememberMe: absent(Flag) }, { title: 'LoginRequest' }),
  revokeSigningToken: Type.Object(
    { token: Text, token_type_hint: absent(Type.String({ enum: ['access_token', 'refresh_token'] })) },
    { title: 'TokenRevocation' },
  ),
  listSigningCredentials: Type.Object(
    {
      credentialInfo: absent(Flag),
      onlyValid: absent(Flag),
      maxResults: absent(Type.Integer({ minimum: 1 })),
      pageToken: absent(Text),
      ...DETAIL,
    },
    { title: 'SigningCredentialListRequest' },
  ),
  getSigningCredential: Type.Object({ credentialID: CredentialId, ...DETAIL }, { title: 'SigningCredentialRequest' }),
  authorizeSigning: Type.Object(
    {
      credentialID: CredentialId,
      numSignatures: Type.Integer({ minimum: 1, maximum: MAX_SIGNATURES }),
      hashes: Hashes,
      hashAlgorithmOID: HashOid,
      authData: Type.Array(Type.Object({ id: Type.String({ enum: [PIN] }), value: Text }, { title: 'AuthData' }), {
        minItems: 1,
        maxItems: 1,
        description: 'The access code. `PIN` is read where it is absent.',
      }),
    },
    { title: 'SigningAuthorizationRequest' },
  ),
  signHashes: Type.Object(
    {
      credentialID: CredentialId,
      SAD: Text,
      hashes: Hashes,
      signAlgo: Type.String({ enum: [...ALL_ALGORITHMS] }),
      hashAlgorithmOID: absent(
        Type.String({ enum: HASH_OIDS, description: 'Needed where signAlgo implies no digest.' }),
      ),
      operationMode: absent(Type.String({ enum: ['S'] })),
    },
    { title: 'SigningRequest' },
  ),
};

/** Names of errors by status. */
const ERRORS = {
  400: ['invalid_request', 'invalid_authentication_data'],
  401: ['invalid_token', 'expired_token'],
  403: ['access_denied', 'unauthorized_client'],
  413: ['invalid_request'],
  415: ['invalid_request'],
  429: ['temporarily_unavailable'],
  500: ['server_error'],
  503: ['temporarily_unavailable'],
} as const;
const ERROR_SCHEMAS = Object.fromEntries(
  Object.entries(ERRORS).map(([status, names]) => [
    status,
    Type.Object(
      { error: Type.String({ enum: [...names] }), error_description: Type.String() },
      { title: `SigningError${status}` },
    ),
  ]),
);
type Status = keyof typeof ERRORS;
const errors = (...statuses: readonly Status[]) =>
  Object.fromEntries(statuses.map((status) => [status, ERROR_SCHEMAS[status]]));

const ANYWHERE: readonly Status[] = [400, 413, 415];
const AUTHENTICATED: readonly Status[] = [...ANYWHERE, 401, 403, 429, 500, 503];

const TWO_HEADERS = { keyId: [], authKey: [] };
const BY_SECRET = [{ basic: [] }, TWO_HEADERS];
const common = {
  tags: ['signing'],
  'x-reseal-extension': true,
  security: [...BY_SECRET, { accessToken: [] }],
} as const;

const OPERATIONS = {
  getSigningInfo: {
    ...common,
    security: [],
    summary: 'Say what the signing service can do',
    description: 'For everyone: no authentication.',
    'x-optional-body': true,
    response: { 200: ANSWERS.getSigningInfo, ...errors(...ANYWHERE) },
  },
  logInToSign: {
    ...common,
    security: BY_SECRET,
    summary: 'Exchange key id and secret for an access token',
    description: 'The token is short-lived and is sent as Bearer.',
    'x-optional-body': true,
    response: { 200: ANSWERS.logInToSign, ...errors(...AUTHENTICATED) },
  },
  revokeSigningToken: {
    ...common,
    summary: 'Revoke an access token',
    description: 'It ends at once. Only one of the same key, and only one that has not ended.',
    response: { 204: Type.Null(), ...errors(...AUTHENTICATED) },
  },
  listSigningCredentials: {
    ...common,
    summary: 'List the keys that can sign',
    description: 'The newest first page; `nextPageToken` leads to the next.',
    'x-optional-body': true,
    response: { 200: ANSWERS.listSigningCredentials, ...errors(...AUTHENTICATED) },
  },
  getSigningCredential: {
    ...common,
    summary: 'Describe a key that can sign',
    description: 'Its algorithms, its certificate, and how its use is authorized.',
    response: { 200: ANSWERS.getSigningCredential, ...errors(...AUTHENTICATED) },
  },
  authorizeSigning: {
    ...common,
    summary: 'Authorize signatures of certain digests with the access code',
    description: 'Wrong codes lock the key, longer each time.',
    response: { 200: ANSWERS.authorizeSigning, ...errors(...AUTHENTICATED) },
  },
  signHashes: {
    ...common,
    summary: 'Sign digests that were authorized',
    description: 'An authorization serves once.',
    response: { 200: ANSWERS.signHashes, ...errors(...AUTHENTICATED) },
  },
} as const satisfies Record<keyof typeof BODIES, FastifySchema>;

/** What the route of an operation declares. */
export const cscSchema = (version: CscVersion, operationId: keyof typeof OPERATIONS): FastifySchema =>
  version === 'v2' ? { operationId, body: BODIES[operationId], ...OPERATIONS[operationId] } : { hide: true };
