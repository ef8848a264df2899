// The examples of the OpenAPI document: recorded from the service with `npm run record-examples`, and compared here with
// what it answers now. No operation, code or event is without one.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after } from 'node:test';
import { Check, Errors } from 'typebox/schema';
import { CALLBACK_ACTIONS } from '../../../src/domain/callbacks/callback.ts';
import { EXAMPLES_FILE, type Examples, readExamples } from '../../../src/http/pages/examples.ts';
import { rule } from '../../support/contract.ts';
import type { Json } from '../../support/document.ts';
import { codesIn, provokeErrors } from '../../support/example-errors.ts';
import { Matching } from '../../support/example-matching.ts';
import { ExampleSession, runSession } from '../../support/example-session.ts';

const IS_RECORDING = process.env.RECORD_EXAMPLES === '1';
/** Of all recorded errors: it says nothing to a reader, and would make equal ones differ. */
const REQUEST_ID = '06fkh5h0000000000000000000';

const session = await ExampleSession.open();
after(() => session[Symbol.asyncDispose]());
const entities = await runSession(session);
const errors = await provokeErrors(session, entities);
const { calls, events } = session;
const { operations, document } = session.client;

const errorBody = ({ request_id, ...body }: Json): Json => ({ ...body, ...(request_id && { request_id: REQUEST_ID }) });

if (IS_RECORDING) {
  writeFileSync(EXAMPLES_FILE, `${JSON.stringify(recorded(), null, 2)}\n`);
  // The document of this run has the examples from before.
  process.exit();
}

/** Errors that several operations answer alike are recorded once. */
function recorded(): Examples {
  const shared: Record<string, Json> = {};
  const own: Record<string, { calls: Record<string, Json>; errors: Record<string, Json> }> = {};
  const of = (operationId: string) => (own[operationId] ??= { calls: {}, errors: {} });
  for (const { operationId, name, ...example } of calls) of(operationId).calls[name] = example;
  for (const [code, answers] of Map.groupBy(errors, ({ code }) => code)) {
    const bodies = answers.map(({ operationId, answer }) => ({
      operationId,
      text: JSON.stringify(errorBody(answer.body)),
    }));
    const ours = bodies.filter(({ text }) => text.startsWith('{"code"'));
    const counts = [...Map.groupBy(ours, ({ text }) => text)].sort(([, one], [, other]) => other.length - one.length);
    const [[most] = []] = counts;
    if (most !== undefined) shared[code] = JSON.parse(most);
    for (const { operationId, text } of bodies) if (text !== most) of(operationId).errors[code] = JSON.parse(text);
  }
  return { operations: own, errors: shared, events };
}

rule('ops 27', 'Every example in the OpenAPI document is what the service answers', () => {
  const examples = readExamples();
  const matching = new Matching();
  for (const { operationId, name, ...actual } of calls) {
    matching.require(examples.operations[operationId]?.calls[name], actual, `${operationId} ${name}`);
  }
  for (const [action, event] of Object.entries(events)) matching.require(examples.events[action], event, action);
  for (const { operationId, code, answer } of errors) {
    const example = examples.operations[operationId]?.errors[code] ?? examples.errors[code];
    matching.require(example, errorBody(answer.body), `${operationId} ${code}`);
  }
  // None is left that nothing asserts any more.
  const asserted = new Set([
    ...calls.map(({ operationId, name }) => `${operationId} ${name}`),
    ...errors.map(({ operationId, code }) => `${operationId} ${code}`),
    ...errors.map(({ code }) => code),
    ...Object.keys(events),
  ]);
  const all = [
    ...Object.entries(examples.operations).flatMap(([id, one]) =>
      [...Object.keys(one.calls), ...Object.keys(one.errors)].map((name) => `${id} ${name}`),
    ),
    ...Object.keys(examples.errors),
    ...Object.keys(examples.events),
  ];
  assert.deepEqual(
    all.filter((one) => !asserted.has(one)),
    [],
  );
});

rule('ops 26', 'and examples of its success and of each code', () => {
  for (const { operation, method, path } of operations) {
    const what = `${method} ${path}`;
    const { operationId, tags, summary, description, parameters = [], responses } = operation;
    assert.match(operationId, /^[a-z][A-Za-z]+$/, what);
    assert.ok(tags.length === 1 && summary && description, what);
    assert.ok(
      document.tags.some(({ name, description: about }: Json) => name === tags[0] && about),
      what,
    );
    assert.ok(
      calls.some((call) => call.operationId === operationId),
      `${what} has no example`,
    );
    for (const { name, in: place, example } of parameters) {
      if (place === 'path') assert.notEqual(example, undefined, `${what} has no example of ${name}`);
    }
    for (const [status, { content, headers }] of Object.entries<Json>(responses)) {
      if (status === 'default') continue;
      assert.ok(headers['X-Request-Id'], `${what} ${status}`);
      assert.equal('Retry-After' in headers, status === '429' || status === '503', `${what} ${status}`);
      if (status === '204') continue;
      assert.ok(Object.keys(content['application/json'].examples ?? {}).length > 0, `${what} ${status} has no example`);
    }
    const provoked = errors.flatMap((one) => (one.operationId === operationId ? [one.code] : []));
    // By code; where errors have another form, by status.
    const statuses = Object.keys(responses).filter((status) => /^[45]/.test(status));
    const declared = tags[0] === 'signing' ? statuses : [...codesIn(responses), ...statuses.filter(isOfTransport)];
    assert.deepEqual(declared.sort(), provoked.sort(), what);
  }
});

const isOfTransport = (status: string): boolean => status === '413' || status === '415';

/** Refuses fields that the schema does not name, which a client would not see. */
const closed = (schema: Json): Json => {
  if (Array.isArray(schema)) return schema.map(closed);
  if (schema === null || typeof schema !== 'object') return schema;
  const parts = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return [schema.type].flat().includes('object') && schema.properties
    ? { additionalProperties: false, ...parts }
    : parts;
};

rule('ops 28', 'No answer has a field that its schema in the OpenAPI document does not name', () => {
  let checked = 0;
  const require = ({ schema, examples = {} }: Json, what: string) => {
    const strict = closed(schema);
    for (const [name, { value }] of Object.entries<Json>(examples)) {
      checked += 1;
      assert.ok(Check(strict, value), `${what} ${name}: ${JSON.stringify(Errors(strict, value)[1])}`);
    }
  };
  const webhooks = Object.values<Json>(document.webhooks).map(({ post }) => post);
  for (const { operationId, requestBody, responses } of [
    ...operations.map(({ operation }) => operation),
    ...webhooks,
  ]) {
    const bodies = [requestBody, ...Object.values<Json>(responses)].flatMap(
      (one) => one?.content?.['application/json'] ?? [],
    );
    for (const body of bodies) require(body, operationId);
  }
  assert.ok(checked > 200, `${checked}`);
});

rule('ops 29', 'has every event, with the headers that authenticate it and its body', () => {
  assert.deepEqual(Object.keys(document.webhooks), Object.keys(CALLBACK_ACTIONS));
  assert.deepEqual(Object.keys(events).sort(), Object.keys(CALLBACK_ACTIONS).sort());
  for (const [action, { post }] of Object.entries<Json>(document.webhooks)) {
    const { headers = {} } = events[action] ?? {};
    const [scheme] = Object.keys(post.security[0]);
    const documented = [
      ...post.parameters.map(({ name }: Json) => name),
      document.components.securitySchemes[scheme!].name.toLowerCase(),
    ];
    // Those of HTTP itself are not described.
    const sent = Object.keys(headers).filter((name) => !/^(content-|user-agent|connection)/.test(name));
    assert.deepEqual(documented.sort(), sent.sort(), action);
    assert.equal(post.requestBody.content['application/json'].schema.properties.action_id.enum[0], action);
  }
});
