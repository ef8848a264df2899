/** A token bucket: so many at once, then one more each time. */
export interface Rate {
  readonly burst: number;
  readonly everyMs: number;
}

export interface RateLimits {
  /** Takes a token, and returns 0; or takes none, and returns how many milliseconds until there is one. */
  take(key: string, rate: Rate, now: number): Promise<number>;
}
