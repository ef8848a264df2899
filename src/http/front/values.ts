// Schemas and formatting of single values. A schema with a title is a component of the OpenAPI document under that name;
// two different schemas must not share one.
import Type from 'typebox';

/** A type array instead of a union: the serializer then needs no validation to choose between the two. */
export const nullable = <T extends Type.TSchema>(schema: T) => {
  const { type, enum: words } = schema as { readonly type?: string; readonly enum?: readonly unknown[] };
  return Type.Unsafe<Type.Static<T> | null>({
    ...schema,
    type: [type, 'null'],
    ...(words && { enum: [...words, null] }),
  });
};

/** One of a closed list of words. */
export const word = <const T extends string>(title: string, words: readonly T[], description?: string) =>
  Type.Unsafe<T>({ type: 'string', title, enum: [...words], ...(description !== undefined && { description }) });

/** The same in a request, where the domain refuses other words by codes of its own. */
export const text = (schema: Type.TSchema) => Type.Unsafe<string>(schema);
/** The same where an empty text counts as left out (contract envelope 17). */
export const textOrEmpty = (words: readonly string[]) => Type.String({ enum: ['', ...words] });

/** An array in an answer: views may hand over what they must not change. */
export const list = <T extends Type.TSchema>(items: T, options: Type.TSchemaOptions = {}) =>
  Type.Unsafe<readonly Type.Static<T>[]>(Type.Array(items, options));

export const DateTime = Type.String({ format: 'date-time' });
/** Generated clients choose their number type by the format. Below 2^53, so that JavaScript reads it exactly. */
export const Int64 = Type.Integer({ format: 'int64' });

export const moment = (ms: number | null | undefined): string | null =>
  ms == null ? null : new Date(ms).toISOString();
