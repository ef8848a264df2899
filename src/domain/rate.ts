/** Token bucket: holds `burst` tokens, refilled by one every `everyMs`. */
export interface Rate {
  readonly burst: number;
  readonly everyMs: number;
}

export interface RateLimits {
  /** Takes a token and returns 0. If the bucket is empty, returns the milliseconds until the next token. */
  take(key: string, rate: Rate, now: number): Promise<number>;
  /** Deletes buckets that were full again before that time, and so say nothing. Returns how many. */
  deleteFull(before: number, limit: number): Promise<number>;
}
