/** Token bucket: holds `burst` tokens, refilled by one every `everyMs`. */
export interface Rate {
  readonly burst: number;
  readonly everyMs: number;
}

export interface RateLimits {
  /** Takes a token and returns 0. If the bucket is empty, returns the milliseconds until the next token. */
  take(key: string, rate: Rate, now: number): Promise<number>;
}
