// Contract lines that no test proves yet, keyed by the capability that will. The list only shrinks; it is empty when the last one is built.
// biome-ignore format: ids fill the lines, one per line would hide how much is left.
export const PENDING = {
  'callback-delivery': [
    'event 1', 'event 2', 'event 3', 'event 4', 'event 5', 'event 6', 'event 8', 'delivery 1', 'delivery 2', 'delivery 3',
    'delivery 4', 'delivery 5', 'delivery 6', 'delivery 7', 'delivery 8', 'delivery 9', 'delivery 10', 'delivery 11',
  ],
  revocation: [
    'version 2', 'event 7', 'revocation 1', 'revocation 2', 'revocation 3', 'revocation 4', 'revocation 5', 'revocation 6',
    'revocation 7', 'revocation 8', 'revocation 9', 'revocation 10', 'revocation 11',
  ],
} as const satisfies Record<string, readonly string[]>;
