// Turns the routes' schemas into those of the OpenAPI document: a schema with a title becomes a component, and every use
// of it a reference. Routes keep them inline, because validator and serializer are compiled from them.
import { isDeepStrictEqual } from 'node:util';

/** JSON Schema, as far as our schemas use it. */
export interface Schema {
  readonly title?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly discriminator?: { readonly propertyName: string; readonly mapping: Readonly<Record<string, string>> };
  readonly $ref?: string;
  /** Of a parameter: what its text stands for. */
  readonly meaning?: Schema;
}

const NULL = 'null';

export class Components {
  readonly schemas: Record<string, Schema> = {};

  /** A schema for the document, by reference if it has a title. Takes those of TypeBox, whose types say less than they are. */
  readonly documented = (schema: object): Schema => {
    const { title, ...untitled }: Schema = schema;
    if (title === undefined) return this.#withParts(untitled);
    const isNullable = Array.isArray(untitled.type) && untitled.type.includes(NULL);
    const reference = this.#add(title, isNullable ? withoutNull(untitled) : untitled);
    return isNullable ? { anyOf: [reference, { type: NULL }] } : reference;
  };

  #add(name: string, schema: Schema): Schema {
    const component = this.#withParts(schema);
    const known = this.schemas[name];
    if (known && !isDeepStrictEqual(known, component)) throw new Error(`two schemas have the title ${name}`);
    this.schemas[name] = component;
    return { $ref: `#/components/schemas/${name}` };
  }

  #withParts(schema: Schema): Schema {
    const { properties, items, additionalProperties, anyOf, oneOf } = schema;
    return {
      ...schema,
      ...(properties && {
        properties: Object.fromEntries(
          Object.entries(properties).map(([field, inner]) => [field, this.documented(inner)]),
        ),
      }),
      ...(items && { items: this.documented(items) }),
      ...(typeof additionalProperties === 'object' && {
        additionalProperties: this.documented(additionalProperties),
      }),
      ...(anyOf && { anyOf: anyOf.map(this.documented) }),
      ...(oneOf && { oneOf: oneOf.map(this.documented) }),
    };
  }
}

function withoutNull(schema: Schema): Schema {
  const [type = NULL, ...more] = [schema.type ?? []].flat().filter((one) => one !== NULL);
  if (more.length > 0) throw new Error(`a component is of one type, or null: ${type}, ${more.join()}`);
  return { ...schema, type, ...(schema.enum && { enum: schema.enum.filter((one) => one !== null) }) };
}
