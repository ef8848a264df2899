// Contract lines that no test proves yet, keyed by the capability that will. The list only shrinks; it is empty when the last one is built.
// biome-ignore format: ids fill the lines, one per line would hide how much is left.
export const PENDING = {
  revocation: [
    'version 2', 'event 7', 'revocation 1', 'revocation 2', 'revocation 3', 'revocation 4', 'revocation 5', 'revocation 6',
    'revocation 7', 'revocation 8', 'revocation 9', 'revocation 10', 'revocation 11',
  ],
} as const satisfies Record<string, readonly string[]>;
