// Where in the reference the reader is: #SECTION, or #SECTION/ROW. One section is drawn at a time.
import { signal } from '@preact/signals';

export interface Place {
  readonly section: string;
  /** A field or a code inside of it. */
  readonly row: string | undefined;
}

export const place = signal<Place>(read());
addEventListener('hashchange', () => {
  place.value = read();
});

function read(): Place {
  const [section = '', ...rest] = location.hash.slice(1).split('/');
  return { section, row: rest.length > 0 ? decoded(rest.join('/')) : undefined };
}

/** Never throws. What cannot be decoded names no row. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const hrefOf = (section: string, row?: string): string =>
  row === undefined ? `#${section}` : `#${section}/${encodeURIComponent(row)}`;
