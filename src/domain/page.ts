/** Keyset paging: `after` is the last id of the previous page. */
export interface Page {
  readonly after?: string | undefined;
  readonly limit: number;
}
