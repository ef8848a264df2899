// Contract lines that no test proves yet, keyed by the capability that will. The list only shrinks; it is empty when the last one is built.
// biome-ignore format: ids fill the lines, one per line would hide how much is left.
export const PENDING = {
  'domain-validation': [
    'order 14',
    'reissue 37', 'dcv 4', 'dcv 5', 'dcv 6', 'dcv 7', 'dcv 8', 'dcv 9', 'dcv 10', 'dcv 11', 'dcv 12', 'dcv 13', 'dcv 14',
    'dcv 15', 'persist 7', 'persist 8', 'persist 9', 'persist 10', 'persist 11', 'persist 12', 'persist 13', 'persist 14',
    'persist 15', 'persist 16', 'persist 17',
  ],
  'callback-delivery': [
    'event 1', 'event 2', 'event 3', 'event 4', 'event 5', 'event 6', 'event 8', 'delivery 1', 'delivery 2', 'delivery 3',
    'delivery 4', 'delivery 5', 'delivery 6', 'delivery 7', 'delivery 8', 'delivery 9', 'delivery 10', 'delivery 11',
  ],
} as const satisfies Record<string, readonly string[]>;
