// Encoding of values in text columns: bytes as base64, lists as JSON (ADR 0017); and lists of columns.
import { sql } from 'kysely';

/** Over the same memory: `Buffer.from` of bytes would copy them. */
export const textOf = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');
export const bytesFrom = (text: string): Uint8Array => Buffer.from(text, 'base64');

export const listText = (list: readonly unknown[]): string => JSON.stringify(list);
export const listFrom = <T>(text: string): T[] => JSON.parse(text);

export const columnsOf = (names: readonly string[]) => sql.join(names.map((name) => sql.ref(name)));

export const assigned = <Column extends string>(names: readonly Column[], row: Readonly<Record<Column, unknown>>) =>
  sql.join(names.map((name) => sql`${sql.ref(name)} = ${row[name]}`));
