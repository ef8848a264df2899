// The address: everything after #. Under any path prefix the page's own address stays the same, so links need no knowledge of it.
import { signal } from '@preact/signals';

export interface Address {
  /** Such as ['orders', '123', 'reissue']. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export const address = signal<Address>(read());
addEventListener('hashchange', () => {
  address.value = read();
});

function read(): Address {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

/** Never throws. A path that cannot be decoded is none of ours and matches no page. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The address of a page, with every segment encoded. Empty values of the query are left out. */
export function href(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const kept = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = kept.length > 0 ? `?${new URLSearchParams(kept)}` : '';
  return `#/${path.map(encodeURIComponent).join('/')}${search}`;
}

export function go(path: readonly string[], query?: Readonly<Record<string, string | undefined>>): void {
  location.hash = href(path, query);
}

/** Leaves no trace of the address before in the history. */
export function replaceAddress(path: readonly string[]): void {
  history.replaceState(null, '', `${location.pathname}${href(path)}`);
  // The browser reports no change of the fragment for this.
  address.value = read();
}
