// Files that the page itself makes: certificates, keys, CSV. Nothing is asked for, so nothing is logged anywhere.

export function download(
  name: string,
  content: string | Uint8Array<ArrayBuffer>,
  type = 'application/x-pem-file',
): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement('a');
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  // Some browsers read the address after the click has returned.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Letters, digits, dots and hyphens of a name: safe in every file system. */
export const fileName = (name: string, extension: string): string =>
  `${
    name
      .replace('*', 'wildcard')
      .replace(/[^\w.-]+/g, '_')
      .slice(0, 100) || 'certificate'
  }.${extension}`;
