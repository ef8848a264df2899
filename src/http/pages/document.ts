// The OpenAPI document, from what the routes declare and from recorded examples. Paths, schemas and codes have no second
// description anywhere.
import { STATUS_CODES } from 'node:http';
import type { FastifySchema } from 'fastify';
import type { ErrorCode } from '../../domain/errors.ts';
import { ERROR_TABLE } from '../front/error-table.ts';
import { codesOf, type DescribedRoute, TAGS } from '../front/operation.ts';
import { Components, type Schema } from './components.ts';
import { byStatus, errorSchema, OTHER_ERROR, WAITING_CODES } from './error-responses.ts';
import type { CallExample, Examples, OperationExamples } from './examples.ts';
import { CALLBACK_SECURITY, EVENTS, webhooks } from './webhooks.ts';

type Json = Readonly<Record<string, unknown>>;

const INTRODUCTION =
  'Certificate order service. Every answer is JSON: `{"code":"success","data":…}`, or an error whose `code` says what is wrong. ' +
  'Messages are in English or Chinese, as `Accept-Language` or the account asks. Companions are operations of ours around the ' +
  'specified interface, marked `x-reseal-extension`. Within v3 the interface only grows: expect further fields, codes and events. ' +
  'The signing API keeps to the forms of its own specification.';

const SECURITY_SCHEMES = {
  keyId: { type: 'apiKey', in: 'header', name: 'X-CC-Key-ID' },
  authKey: { type: 'apiKey', in: 'header', name: 'X-CC-Auth-Key' },
  basic: { type: 'http', scheme: 'basic', description: 'Key id and secret.' },
  accessToken: { type: 'http', scheme: 'bearer', description: 'From `auth/login` of the signing API.' },
  ...CALLBACK_SECURITY,
};

const HEADERS = {
  'X-Request-Id': {
    required: true,
    description: 'The id of the request in the log of the service; in an error also `request_id`.',
    schema: { type: 'string' },
  },
  'Retry-After': { required: true, description: 'Seconds to wait.', schema: { type: 'integer', minimum: 0 } },
  Link: {
    description: 'Of CSV that has a next page: `<…>; rel="next"`, relative to the request.',
    schema: { type: 'string' },
  },
  'WWW-Authenticate': { required: true, description: 'The schemes that are taken.', schema: { type: 'string' } },
};

const header = (name: keyof typeof HEADERS): Json => ({ [name]: { $ref: `#/components/headers/${name}` } });

/** Errors of the HTTP message itself, where a body is read. */
const TRANSPORT_ERRORS = {
  413: { name: 'BodyTooLarge', description: 'The body is larger than 256 KiB.' },
  415: { name: 'BodyNotJson', description: 'The body is not declared as JSON.' },
} as const;
const OTHER = {
  name: 'OtherError',
  description: 'Of the HTTP message, of a proxy in between, or of a version to come.',
};

export function openApiDocument(routes: readonly DescribedRoute[], examples: Examples, publicUrl: string): Json {
  const components = new Components();
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.url.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, components, examples) };
  }
  const used = new Set<string | undefined>(routes.map(({ schema }) => schema.tags?.[0]));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Reseal',
      version: '3',
      description: INTRODUCTION,
      contact: { name: 'The operator of this service', url: `${publicUrl}/docs` },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    // One object with two names: both headers are required.
    security: [{ keyId: [], authKey: [] }],
    tags: [
      ...Object.entries(TAGS).flatMap(([name, description]) => (used.has(name) ? { name, description } : [])),
      EVENTS,
    ],
    // Every code with what to do about it, in both languages: for the reference page.
    'x-error-codes': ERROR_TABLE,
    paths,
    webhooks: webhooks(components, examples.events),
    components: {
      securitySchemes: SECURITY_SCHEMES,
      headers: HEADERS,
      responses: sharedResponses(components, examples),
      examples: Object.fromEntries(
        Object.entries(examples.errors).flatMap(([code, value]) => (code in ERROR_TABLE ? [[code, { value }]] : [])),
      ),
      // Complete only now: whatever is documented above adds to them.
      schemas: components.schemas,
    },
  };
}

function operation({ method, action, schema }: DescribedRoute, components: Components, examples: Examples): Json {
  const { operationId = '', tags, summary, description, security } = schema;
  const recorded = examples.operations[operationId] ?? { calls: {}, errors: {} };
  const calls = Object.entries(recorded.calls);
  const parameters = parametersOf(schema, components, calls[0]?.[1]);
  const codes = codesOf(schema, action);
  return {
    operationId,
    tags,
    summary,
    ...(description !== undefined && { description }),
    ...(schema['x-reseal-extension'] && { 'x-reseal-extension': true }),
    ...(security && { security }),
    ...(parameters.length > 0 && { parameters }),
    ...requestBody(schema, components, calls),
    responses: {
      ...declaredResponses(schema, components, recorded),
      ...(codes && errorResponses(codes, components, recorded, examples)),
      ...(codes && method !== 'GET' && Object.fromEntries(Object.entries(TRANSPORT_ERRORS).map(sharedReference))),
      ...(codes && { default: response(OTHER.name) }),
    },
  };
}

const response = (name: string) => ({ $ref: `#/components/responses/${name}` });
const sharedReference = ([status, { name }]: [string, { readonly name: string }]) => [status, response(name)];
const json = (schema: Schema, examples: Json) => ({
  'application/json': { schema, ...(Object.keys(examples).length > 0 && { examples }) },
});

const PLACES = { params: 'path', querystring: 'query', headers: 'header' } as const;

function parametersOf(schema: FastifySchema, components: Components, call: CallExample | undefined): Json[] {
  return Object.entries(PLACES).flatMap(([part, place]) => {
    const { properties = {}, required = [] } = (schema[part as keyof typeof PLACES] ?? {}) as Schema;
    return Object.entries(properties).map(([field, { description, meaning, ...own }]) => {
      const name = place === 'header' ? headerName(field) : field;
      const example = call?.parameters?.[name];
      return {
        ...{ name, in: place, required: place === 'path' || required.includes(field) },
        ...(description !== undefined && { description }),
        schema: components.documented(meaning ?? own),
        ...(example !== undefined && { example }),
      };
    });
  });
}

/** As people write it; Node has it in lower case. */
const headerName = (name: string): string =>
  name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()).replace(/^X-Cc-/, 'X-CC-');

function requestBody(schema: FastifySchema, components: Components, calls: readonly [string, CallExample][]): Json {
  if (!schema.body) return {};
  const examples = calls.flatMap(([name, { body }]) => (body === undefined ? [] : [[name, { value: body }]]));
  const content = json(components.documented(schema.body), Object.fromEntries(examples));
  return { requestBody: { required: !schema['x-optional-body'], content } };
}

/** What the route's own schemas say: its answer, and errors where they have another form than ours. */
function declaredResponses(
  { response = {}, 'x-csv': isCsv }: FastifySchema,
  components: Components,
  recorded: OperationExamples,
): Json {
  const statuses = Object.entries(response as Record<string, object>).filter(([status]) => status !== 'default');
  const answers = Object.entries(recorded.calls).map(([name, { answer }]) => [name, { value: answer }]);
  return Object.fromEntries(
    statuses.map(([status, schema]) => {
      const isSuccess = status.startsWith('2');
      const errors = status in recorded.errors ? { error: { value: recorded.errors[status] } } : {};
      const examples = isSuccess ? Object.fromEntries(answers) : errors;
      const headers = {
        ...header('X-Request-Id'),
        ...HEADERS_OF_STATUS[status],
        ...(isCsv && isSuccess && header('Link')),
      };
      const csv = isCsv && isSuccess && { 'text/csv': { schema: { type: 'string' } } };
      return [
        status,
        {
          ...{ description: isSuccess ? 'Success.' : `${STATUS_CODES[status]}.`, headers },
          ...(status !== NO_CONTENT && { content: { ...json(components.documented(schema), examples), ...csv } }),
        },
      ];
    }),
  );
}

const NO_CONTENT = '204';
/** Where errors have another form than ours. */
const HEADERS_OF_STATUS: Readonly<Record<string, Json>> = {
  401: header('WWW-Authenticate'),
  429: header('Retry-After'),
  503: header('Retry-After'),
};

function errorResponses(
  codes: Iterable<ErrorCode>,
  components: Components,
  recorded: OperationExamples,
  shared: Examples,
): Json {
  const exampleOf = (code: ErrorCode): Json => {
    if (code in recorded.errors) return { [code]: { value: recorded.errors[code] } };
    return code in shared.errors ? { [code]: { $ref: `#/components/examples/${code}` } } : {};
  };
  return Object.fromEntries(
    [...byStatus(codes)].map(([status, alike]) => [
      status,
      {
        description: alike.map((code) => `\`${code}\`: ${ERROR_TABLE[code].en}`).join('\n\n'),
        headers: {
          ...header('X-Request-Id'),
          ...(alike.some((code) => WAITING_CODES.has(code)) && header('Retry-After')),
        },
        content: json(oneOf(alike, components), Object.assign({}, ...alike.map(exampleOf))),
      },
    ]),
  );
}

/** Told apart by the code. */
function oneOf(codes: readonly ErrorCode[], { documented }: Components): Schema {
  const references = codes.map((code) => [code, documented(errorSchema(code))] as const);
  const [[, only] = []] = references;
  if (only && references.length === 1) return only;
  return {
    oneOf: references.map(([, reference]) => reference),
    discriminator: {
      propertyName: 'code',
      mapping: Object.fromEntries(references.map(([code, { $ref = '' }]) => [code, $ref])),
    },
  };
}

function sharedResponses({ documented }: Components, examples: Examples): Json {
  const headers = header('X-Request-Id');
  const transport = Object.entries(TRANSPORT_ERRORS).map(([status, { name, description }]) => {
    const example = status in examples.errors ? { [name]: { value: examples.errors[status] } } : {};
    return [name, { description, headers, content: json(documented(errorSchema('invalid_parameters')), example) }];
  });
  const other = { description: OTHER.description, content: json(documented(OTHER_ERROR), {}) };
  return { ...Object.fromEntries(transport), [OTHER.name]: other };
}
