// Schemas and formatting of single values in responses.
import Type from 'typebox';

export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
export const DateTime = Type.String({ format: 'date-time' });

export const moment = (ms: number | null | undefined): string | null =>
  ms == null ? null : new Date(ms).toISOString();
