// Messages between the pool and its workers: flat records of values that survive structured cloning.

export type Packet = Readonly<Record<string, Uint8Array | string | number>>;

/** Jobs by name. Each takes at most one packet and returns one. */
export type Jobs = Readonly<Record<string, (input: never) => Packet>>;

export interface JobRequest {
  readonly job: string;
  readonly input: Packet;
}

export type JobResult = { readonly output: Packet } | { readonly error: unknown };

/**
 * Returns a copy of the packet and the buffers to transfer with it. Structured cloning would leave a copy that cannot be
 * wiped, and transferring detaches the buffers of the owner; so the packet is copied once and the copy is transferred.
 */
export function transferable(packet: Packet): { packet: Packet; transfer: ArrayBuffer[] } {
  const transfer: ArrayBuffer[] = [];
  const entries = Object.entries(packet).map(([name, value]) => {
    if (!(value instanceof Uint8Array)) return [name, value];
    // An ArrayBuffer is allocated off-heap. A short typed array starts on the heap, where a transfer would leave a copy.
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
