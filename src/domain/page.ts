/** Where a list goes on: after the last id already seen. */
export interface Page {
  readonly after?: string | undefined;
  readonly limit: number;
}
