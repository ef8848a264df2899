// What a text in the search field stands for. One field serves for names, domains, serial numbers and ids.
import { account, Problem } from '../../shell/api.ts';
import type { Data } from '../../shell/wire.ts';

const ID = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;
const HEX = /^(?:0x)?[0-9a-f]{2}(?:[: ]?[0-9a-f]{2}){7,}$/i;
/** As many labels as the service looks up below a domain. */
const MAX_SUFFIX_LABELS = 8;

export type Search = Readonly<Record<'name' | 'name_suffix' | 'serial_number', string | undefined>>;

/** The filter of the lists. */
export function searchOf(text: string): Partial<Search> {
  const given = text.trim();
  if (given === '') return {};
  if (HEX.test(given)) return { serial_number: given.replace(/^0x|[: ]/gi, '') };
  const labels = given.split('.').length;
  return given.startsWith('*.') || labels > MAX_SUFFIX_LABELS || labels === 1
    ? { name: given }
    : { name_suffix: given };
}

/** The order that the text names by its id or by the account's own name for it; undefined if it names none. */
export async function orderNamed(text: string): Promise<string | undefined> {
  const given = text.trim();
  if (given === '' || HEX.test(given)) return undefined;
  const path = ID.test(given) ? `orders/${given}` : given.includes('.') ? undefined : alternate(given);
  if (path === undefined) return undefined;
  try {
    return (await account<Data<'OrderResponse'>>('GET', path)).id;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return undefined;
    throw error;
  }
}

const alternate = (name: string): string => `orders/alternate/${encodeURIComponent(name)}`;
