// Contract lines that no test proves yet, keyed by the capability that will. There is none; a line that is promised before it is built
// stands here.
export const PENDING = {} as const satisfies Record<string, readonly string[]>;
