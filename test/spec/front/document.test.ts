// What a route must say about itself, and how its schemas become the document.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify, { type FastifySchema } from 'fastify';
import Type from 'typebox';
import { Refusal } from '../../../src/domain/errors.ts';
import { collectOperations } from '../../../src/http/front/operation.ts';
import { answers } from '../../../src/http/front/reply.ts';
import { nullable, word } from '../../../src/http/front/values.ts';
import { Components } from '../../../src/http/pages/components.ts';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { documentOf, operationsIn } from '../../support/document.ts';

const DESCRIBED: FastifySchema = {
  ...{ operationId: 'getThing', tags: ['orders'], summary: 'A thing', description: 'A thing.', errors: [] },
  response: answers('Thing', Type.Object({ id: Type.String() })),
};

test('a route that says too little about its operation is refused when it registers', () => {
  const register = (...schemas: readonly FastifySchema[]) => {
    const app = Fastify();
    const operations = collectOperations(app);
    for (const [index, schema] of schemas.entries()) app.get(`/${index}`, { schema }, async () => ({}));
    return operations.length;
  };
  assert.equal(register(DESCRIBED), 1, 'without the HEAD that Fastify adds');
  assert.equal(register({ hide: true }), 0);
  for (const field of ['operationId', 'tags', 'summary', 'description', 'errors', 'response'] as const) {
    const { [field]: _, ...rest } = DESCRIBED;
    assert.throws(() => register(rest), new RegExp(`GET /0 declares no .*${field}`), field);
  }
  assert.throws(() => register(DESCRIBED, DESCRIBED), /two routes have the operationId getThing/);
  // Errors of another form than ours are declared as responses.
  const { errors: _, ...other } = DESCRIBED;
  assert.equal(register({ ...other, response: { 200: Type.Object({}), 400: Type.Object({}) } }), 1);
});

test('a schema with a title is a component, also where it may be null, and has one meaning', () => {
  const components = new Components();
  const Status = word('Status', ['on', 'off']);
  const Thing = Type.Object({ status: Status, last: nullable(Status) }, { title: 'Thing' });
  const documented = components.documented(Type.Object({ thing: nullable(Thing), things: Type.Array(Thing) }));
  const reference = { $ref: '#/components/schemas/Thing' };
  assert.deepEqual(documented.properties, {
    thing: { anyOf: [reference, { type: 'null' }] },
    things: { type: 'array', items: reference },
  });
  const status = { $ref: '#/components/schemas/Status' };
  assert.deepEqual(components.schemas, {
    Status: { type: 'string', enum: ['on', 'off'] },
    Thing: {
      type: 'object',
      required: ['status', 'last'],
      properties: { status, last: { anyOf: [status, { type: 'null' }] } },
    },
  });
  assert.throws(() => components.documented(word('Status', ['on'])), /two schemas have the title Status/);
});

rule('ops 28', 'a code that the document does not list for the operation is logged as an error', async () => {
  await using app = await startApp();
  const key = await app.newKey();
  const { orders } = app.app.store;
  const { find } = orders;
  orders.find = async () => {
    throw new Refusal('cert_not_found');
  };
  const { status, body, headers } = await app.call('GET', '/openapi/v3/orders/none', { key });
  orders.find = find;
  assert.deepEqual([status, body.code], [404, 'cert_not_found']);
  const at = app.lines.findIndex(({ event }) => event === 'error');
  const [line] = app.lines.splice(at, 1);
  assert.ok(line?.event === 'error');
  assert.equal(line.message, 'getOrder answered cert_not_found, which it does not declare');
  assert.equal(line.request_id, headers.get('x-request-id'));
  // One that it declares is no error.
  assert.equal((await app.call('GET', '/openapi/v3/orders/none', { key })).body.code, 'order_not_found');
  assert.ok(!app.lines.some(({ event }) => event === 'error'));
});

rule('ops 26', 'a path has one entry, whatever its methods', async () => {
  await using app = await startApp();
  const document = await documentOf(app);
  const templates = Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, '{}'));
  assert.equal(new Set(templates).size, templates.length);
  for (const { path, operation } of operationsIn(document)) {
    const names = (operation.parameters ?? []).filter((one: { in: string }) => one.in === 'path');
    assert.deepEqual(
      names.map(({ name }: { name: string }) => `{${name}}`),
      path.match(/\{\w+\}/g) ?? [],
      `${operation.operationId}`,
    );
  }
});
