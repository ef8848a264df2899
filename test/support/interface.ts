// The API as a list of facts that may only grow: operations, request fields, response fields, codes. Read from the
// OpenAPI document, without references.

/** Fact → value, such as `POST /orders/{id}/reissue > certificate.csr` → `string optional`. */
export type Facts = Readonly<Record<string, string>>;

interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}
interface Operation {
  readonly operationId?: string;
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema?: Schema }[];
  readonly requestBody?: { required?: boolean; content: Readonly<Record<string, { schema?: Schema }>> };
  readonly responses?: Readonly<Record<string, { content?: Readonly<Record<string, { schema?: Schema }>> }>>;
}
export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

export function factsOf(document: OpenApi, statuses: Readonly<Record<string, { status: number }>>): Facts {
  const facts: Record<string, string> = {};
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const name = `${method.toUpperCase()} ${path}`;
      facts[name] = 'operation';
      facts[`${name} is`] = operation.operationId ?? '';
      for (const { name: field, in: place, required, schema } of operation.parameters ?? []) {
        facts[`${name} > ${place} ${field}`] = `${typeOf(schema)} ${required ? 'required' : 'optional'}`;
      }
      const body = operation.requestBody;
      if (body) facts[`${name} > body`] = body.required === false ? 'optional' : 'required';
      note(facts, `${name} >`, body?.content['application/json']?.schema, true);
      note(facts, `${name} <`, operation.responses?.['200']?.content?.['application/json']?.schema, false);
    }
  }
  for (const [code, { status }] of Object.entries(statuses)) facts[`code ${code}`] = String(status);
  return facts;
}

/** Only requests distinguish required from optional: a response always has all its fields. */
function note(facts: Record<string, string>, name: string, schema: Schema | undefined, isRequest: boolean): void {
  for (const inner of schema?.anyOf ?? []) note(facts, name, inner, isRequest);
  if (schema?.items) note(facts, `${name}[]`, schema.items, isRequest);
  for (const [field, inner] of Object.entries(schema?.properties ?? {})) {
    const path = name.endsWith('>') || name.endsWith('<') ? `${name} ${field}` : `${name}.${field}`;
    const need = isRequest ? ` ${schema?.required?.includes(field) ? 'required' : 'optional'}` : '';
    facts[path] = `${typeOf(inner)}${need}`;
    note(facts, path, inner, isRequest);
  }
}

const typeOf = ({ type, anyOf }: Schema = {}): string =>
  (type === undefined ? (anyOf?.map(typeOf) ?? ['any']) : [type].flat()).sort().join('|');

/** Changes that break clients of the recorded interface, and facts that are not recorded yet. */
export function compareFacts(recorded: Facts, now: Facts): { broken: string[]; added: string[] } {
  const broken = Object.entries(recorded).flatMap(([fact, was]) => {
    const is = now[fact];
    if (is === undefined) return [`${fact} is gone`];
    // A required field may become optional; the reverse breaks clients that omit it.
    return is === was || is === was.replace(/required$/, 'optional') ? [] : [`${fact} was "${was}" and is "${is}"`];
  });
  const added = Object.keys(now).filter((fact) => recorded[fact] === undefined);
  // A new required field breaks existing clients, unless its operation is new too.
  for (const fact of added) {
    const operation = fact.replace(/ [<>].*$/, '');
    if (fact.includes(' > ') && now[fact]?.endsWith('required') && recorded[operation] !== undefined) {
      broken.push(`${fact} is new and required`);
    }
  }
  return { broken, added };
}
