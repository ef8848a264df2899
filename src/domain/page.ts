/** Keyset paging: `after` is the `nextAfter` of the previous page, in most lists its last id. */
export interface Page {
  readonly after?: string | undefined;
  readonly limit: number;
}

/** A page of a list. With a filter that little passes, it may hold less than its limit and still have `nextAfter`. */
export interface Listed<Row> {
  readonly rows: Row[];
  /** Null on the last page. */
  readonly nextAfter: string | null;
}
