// What goes to a worker and comes back: flat, and of values that mean the same on both sides.
export type Packet = Readonly<Record<string, Uint8Array | string | number>>;

/** A table of jobs: each takes at most one packet and answers with one. */
export type Jobs = Readonly<Record<string, (input: never) => Packet>>;

export interface Order {
  readonly job: string;
  readonly input: Packet;
}

export type Answer = { readonly output: Packet } | { readonly error: unknown };

/**
 * The packet with bytes of its own, to be moved to the other side. Bytes that are copied on the way leave a copy in
 * memory that nobody can wipe, and bytes that are moved are gone for their owner, so: one copy, and that one moves.
 */
export function movable(packet: Packet): { packet: Packet; transfer: ArrayBuffer[] } {
  const transfer: ArrayBuffer[] = [];
  const entries = Object.entries(packet).map(([name, value]) => {
    if (!(value instanceof Uint8Array)) return [name, value];
    // Memory outside the heap from the start: short arrays would begin inside it, and moving them leaves a copy there.
    const own = new ArrayBuffer(value.length);
    const bytes = new Uint8Array(own);
    bytes.set(value);
    transfer.push(own);
    return [name, bytes];
  });
  return { packet: Object.fromEntries(entries), transfer };
}

export function wipe(packet: Packet): void {
  for (const value of Object.values(packet)) if (value instanceof Uint8Array) value.fill(0);
}
