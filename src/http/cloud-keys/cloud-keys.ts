// /openapi/v3/cloud-keys: list cloud-held keys, change an access code, destroy a key. An extension of the specification.
// Signing is the Cloud Signature Consortium API: see csc.ts.
import { isUtf8 } from 'node:buffer';
import Type from 'typebox';
import { type CredentialKind, isPermitted } from '../../domain/access/credential.ts';
import { KEY_TYPES } from '../../domain/certificate/public-key.ts';
import { MAX_HINT, MAX_PIN, MIN_PIN } from '../../domain/cloud-keys/cloud-key.ts';
import { invalid } from '../../domain/errors.ts';
import { Secret } from '../../domain/secret.ts';
import type { HeldKey } from '../../usecases/cloud-keys/operate-cloud-keys.ts';
import type { UseCloudKey } from '../../usecases/cloud-keys/use-cloud-key.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { NextAfter, nextAfter, PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, moment, nullable, word } from '../front/values.ts';

const CloudKeyView = Type.Object(
  {
    id: Type.String({ description: 'The credentialID of /csc/v2.' }),
    key_type: word('KeyType', KEY_TYPES),
    bits: Type.Integer(),
    hint: nullable(
      Type.String({
        description: 'sign_key_pin_tip, as it was written. Null for keys that may not use the access code.',
      }),
    ),
    locked_until: nullable(DateTime),
    created_at: DateTime,
    destroyed_at: nullable(DateTime),
    certificate_id: nullable(Type.String({ description: 'The latest that was issued on it.' })),
  },
  { title: 'CloudKey' },
);

const List = Type.Object({ cloud_keys: Type.Array(CloudKeyView), next_after: NextAfter });
const One = Type.Object({ cloud_key: CloudKeyView });

const Pin = Type.String({ description: 'The access code. Wrong ones lock the key.' });
const ChangePin = Type.Object(
  {
    pin: Pin,
    new_pin: Type.String({ minLength: MIN_PIN, maxLength: MAX_PIN, description: 'Printable characters.' }),
    new_pin_tip: Type.Optional(
      Type.String({ maxLength: MAX_HINT, description: 'Left out, there is no hint any more.' }),
    ),
  },
  { title: 'PinChange' },
);

/** For clients that send no body with DELETE. */
const PIN_HEADER = 'X-CC-Sign-Key-Pin';

const common = { tags: ['cloud keys'], 'x-reseal-extension': true } as const;
const errors = ['cloud_key_not_found', 'sign_key_pin_wrong', 'sign_key_locked', 'request_too_fast'] as const;
const params = Type.Object({ id: Type.String() });

export function cloudKeyOperations(api: Api, cloudKeys: UseCloudKey): void {
  const use = { action: 'use_cloud_key' } as const;
  api.get(
    '/cloud-keys',
    {
      config: { action: 'read' },
      schema: {
        operationId: 'listCloudKeys',
        summary: 'List the cloud-held keys',
        description: 'Destroyed ones too, without a way to use them.',
        querystring: PageQuery,
        ...common,
        errors: [],
        response: answers('CloudKeyList', List),
      },
    },
    async (request) => {
      const page = pageOf(request.query, PageQuery);
      const held = await cloudKeys.list(callerOf(request).account.id, page);
      const ids = held.map(({ key }) => key.id);
      const kind = callerOf(request).credential.kind;
      return success({ cloud_keys: held.map((one) => viewOf(one, kind)), next_after: nextAfter(ids, page) });
    },
  );

  api.put(
    '/cloud-keys/:id/pin',
    {
      config: use,
      schema: {
        operationId: 'changeCloudKeyPin',
        summary: 'Give a cloud-held key another access code',
        description: 'For the access code it has. Wrong ones lock the key, longer each time.',
        params,
        body: ChangePin,
        ...common,
        errors,
        response: answers('CloudKey', One),
      },
    },
    async (request) => {
      const { pin, new_pin, new_pin_tip } = request.body;
      const change = { pin: new Secret(pin), newPin: new Secret(new_pin), newHint: new_pin_tip };
      const held = await cloudKeys.changePin(actorOf(request), request.params.id, change);
      return success({ cloud_key: viewOf(held, callerOf(request).credential.kind) });
    },
  );

  api.delete(
    '/cloud-keys/:id',
    {
      config: use,
      // Fastify would refuse a request without a body. Any other error is thrown below.
      attachValidation: true,
      schema: {
        operationId: 'destroyCloudKey',
        summary: 'Destroy a cloud-held key for good',
        description: `The access code is in the body or in the header ${PIN_HEADER}, in UTF-8, and never in the URL.`,
        params,
        headers: Type.Object({ [PIN_HEADER.toLowerCase()]: Type.Optional(Pin) }),
        'x-optional-body': true,
        body: Type.Object({ pin: Type.Optional(Pin) }, { title: 'KeyDestruction' }),
        ...common,
        errors,
        response: answers('CloudKey', One),
      },
    },
    async (request) => {
      const { body, headers, params: of, validationError } = request;
      if (body !== undefined && validationError) throw validationError;
      const pin = pinIn(body?.pin, headers[PIN_HEADER.toLowerCase()]);
      const held = await cloudKeys.destroy(actorOf(request), of.id, pin);
      return success({ cloud_key: viewOf(held, callerOf(request).credential.kind) });
    },
  );
}

/** Header values arrive as Latin-1, whatever was sent. */
function pinIn(inBody: string | undefined, inHeader: string | string[] | undefined): Secret {
  if (inBody !== undefined && inHeader === undefined) return new Secret(inBody);
  const bytes = Buffer.from(typeof inHeader === 'string' ? inHeader : '', 'latin1');
  if (inBody === undefined && bytes.length > 0 && isUtf8(bytes)) return new Secret(bytes.toString('utf8'));
  throw invalid(
    'pin',
    `Send the access code once: as pin in the body, or in UTF-8 in the header ${PIN_HEADER}.`,
    `请发送一次访问控制码：请求体中的 pin，或 UTF-8 编码的 ${PIN_HEADER} 请求头。`,
  );
}

/** The hint is for those who may enter the code. */
const viewOf = ({ key, isLocked, certificate }: HeldKey, kind: CredentialKind): Type.Static<typeof CloudKeyView> => ({
  id: key.id,
  key_type: key.publicKey.type,
  bits: key.publicKey.bits,
  hint: isPermitted(kind, 'use_cloud_key') ? key.hint : null,
  locked_until: isLocked ? moment(key.lockedUntil) : null,
  created_at: new Date(key.createdAt).toISOString(),
  destroyed_at: moment(key.destroyedAt),
  certificate_id: certificate?.id ?? null,
});
