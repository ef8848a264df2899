// PEM (RFC 7468), both ways.

export function encodePem(label: string, der: Uint8Array): string {
  const text = btoa(Array.from(der, (byte) => String.fromCharCode(byte)).join(''));
  return `-----BEGIN ${label}-----\n${text.replace(/.{1,64}/g, '$&\n')}-----END ${label}-----\n`;
}

/** Every block with that label, in its order. */
export const decodePem = (text: string, label: string): Uint8Array<ArrayBuffer>[] =>
  [...text.matchAll(new RegExp(`-----BEGIN ${label}-----([^-]*)-----END ${label}-----`, 'g'))].map(([, body = '']) =>
    Uint8Array.from(atob(body.replace(/\s/g, '')), (character) => character.charCodeAt(0)),
  );
