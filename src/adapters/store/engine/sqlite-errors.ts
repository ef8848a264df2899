// The meaning of SQLite's result codes.

/** Primary result codes about the file and the machine, not about the statement. */
export const PRIMARY_CODES = {
  busy: 5,
  locked: 6,
  noMemory: 7,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const;

/** Another process holds the write lock: retry shortly. */
export const isSqliteBusy = (error: unknown): boolean => primaryCode(error) === PRIMARY_CODES.busy;

/** The file is not what SQLite has written: no retry helps, and what was read from it may be wrong. */
export const isSqliteDamage = (error: unknown): boolean =>
  primaryCode(error) === PRIMARY_CODES.corrupt || primaryCode(error) === PRIMARY_CODES.notADatabase;

/** The disk, a lock or memory failed, not the statement: a retry may succeed. */
export const isSqliteUnavailable = (error: unknown): boolean =>
  Object.values(PRIMARY_CODES).some((code) => code === primaryCode(error));

function primaryCode(error: unknown): number | undefined {
  const extended = (error as { errcode?: unknown }).errcode;
  return typeof extended === 'number' ? extended & 0xff : undefined;
}
