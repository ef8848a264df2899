// Bounds simultaneous connections to one address. By address and not by name: a wildcard record makes any number of names
// lead to one host, whose owner may not be the caller.
import { type FairSemaphore, fairSemaphore } from '../../kernel/concurrency.ts';

/** Resolves when a connection to the address may be opened; dispose of the result when it is closed. */
export type AddressSlots = (address: string, owner: string) => Promise<Disposable>;

export function addressSlots(perAddress: number): AddressSlots {
  /** Only while an address has connections or waiters. */
  const byAddress = new Map<string, { readonly acquire: FairSemaphore; users: number }>();
  return async (address, owner) => {
    const slots = byAddress.get(address) ?? { acquire: fairSemaphore(perAddress), users: 0 };
    byAddress.set(address, slots);
    slots.users += 1;
    const permit = await slots.acquire(owner);
    return {
      [Symbol.dispose]() {
        slots.users -= 1;
        if (slots.users === 0) byAddress.delete(address);
        permit[Symbol.dispose]();
      },
    };
  };
}
