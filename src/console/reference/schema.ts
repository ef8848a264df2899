// What a value may be, in the words of a reader: types, facts, and all fields below a schema.
import { resolved, type Schema } from './document.ts';

/** A schema with its $ref and allOf merged in. */
export function unfold(schema: Schema = {}): Schema {
  const { $ref, allOf = [], ...rest } = schema;
  const own: Schema = $ref === undefined ? rest : { ...unfold(resolved({ $ref }) as Schema), ...rest };
  if (allOf.length === 0) return own;
  const parts = [...allOf.map(unfold), own];
  const properties = Object.assign({}, ...parts.map((part) => part.properties));
  return Object.assign({}, ...parts, { properties, required: parts.flatMap((part) => part.required ?? []) });
}

interface Variant extends Omit<Schema, 'type'> {
  readonly type?: string | undefined;
}
const isNull = ({ type }: Variant): number => (type === 'null' ? 1 : 0);

/** The alternatives, null last; most schemas are their own only one. */
export function variantsOf(schema: Schema | undefined): Variant[] {
  const { anyOf, oneOf = anyOf, type, ...own } = unfold(schema);
  const variants: Variant[] = oneOf?.flatMap(variantsOf) ?? [type].flat().map((one) => ({ ...own, type: one }));
  if (oneOf && own.properties) variants.unshift(own);
  return variants.sort((a, b) => isNull(a) - isNull(b));
}

/** What is said about a value, be it of the whole or of one alternative. */
export const overall = (schema: Schema | undefined): Schema =>
  Object.assign({}, ...variantsOf(schema).reverse(), unfold(schema));

export const valuesOf = (variant: Pick<Schema, 'enum' | 'const'>): readonly unknown[] =>
  variant.enum ?? ('const' in variant ? [variant.const] : []);

/** Such as string | null, or (string | integer)[]. */
export const typeOf = (schema: Schema | undefined): string =>
  [...new Set(variantsOf(schema).flatMap(typesOf))].join(' | ');

function typesOf(variant: Variant): string | string[] {
  if (variant.items) return `${typeOf(variant.items).replace(/^.* .*$/, '($&)')}[]`;
  const values = valuesOf(variant).map((value) => (value === null ? 'null' : typeof value));
  return variant.type ?? (values.length > 0 ? values : variant.properties ? 'object' : 'any');
}

export interface FieldRow {
  readonly kind: 'field';
  readonly depth: number;
  readonly parent: string;
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}
export type Row =
  | FieldRow
  | { readonly kind: 'alternative'; readonly depth: number; readonly name: string | number }
  | { readonly kind: 'again'; readonly depth: number };

/** All fields below a schema; `above` holds the field lists that we are inside of. */
export function* fieldsOf(schema: Schema | undefined, parent = '', above: readonly unknown[] = []): Generator<Row> {
  const variants = variantsOf(schema).filter(({ items, properties }) => properties || hasFields(items));
  const depth = above.length;
  for (const [index, { items, properties = {}, required = [], title }] of variants.entries()) {
    if (variants.length > 1) yield { kind: 'alternative', depth, name: title ?? index + 1 };
    if (items) yield* fieldsOf(items, `${parent.slice(0, -1)}[].`, above);
    // An allOf makes a new list each time; no real schema is that deep.
    else if (above.includes(properties) || depth > 9) yield { kind: 'again', depth };
    else {
      for (const [name, field] of Object.entries(properties)) {
        yield { kind: 'field', depth, parent, name, schema: field, isRequired: required.includes(name) };
        yield* fieldsOf(field, `${parent}${name}.`, [...above, properties]);
      }
    }
  }
}

/** Whether a list has fields below it, and is not one of mere values. */
const hasFields = (schema: Schema | undefined): boolean =>
  schema !== undefined &&
  variantsOf(schema).some(({ items, properties }) => properties !== undefined || hasFields(items));

const FACTS = /^(format|pattern|default|(min|max)(imum|Length|Items)|exclusive(Min|Max)imum)$/;

export interface Fact {
  readonly name: string;
  readonly values: readonly unknown[];
  /** Of the members of a list. */
  readonly isEach: boolean;
}

export function factsOf(schema: Schema, isEach = false): Fact[] {
  const variants = variantsOf(schema);
  const values = new Set(variants.flatMap(valuesOf).filter((value) => value !== null));
  const facts = Object.entries(overall(schema)).filter(([key]) => FACTS.test(key));
  return [
    ...(values.size > 0 ? [{ name: values.size > 1 ? 'oneOf' : 'always', values: [...values], isEach }] : []),
    ...facts.map(([name, value]) => ({ name, values: [value], isEach })),
    ...variants.flatMap(({ items }) => (items ? factsOf(items, true) : [])),
  ];
}

/** Whether a text can be a value of the schema's type; for a choice of inputs. */
export const isBoolean = (schema: Schema): boolean => variantsOf(schema).some(({ type }) => type === 'boolean');
