// A key for each request that changes something. The same request keeps its key, so that sending it again after a lost
// answer makes no second certificate.
import { useRef } from 'preact/hooks';

export function useIdempotencyKey(body: unknown): string {
  const text = JSON.stringify(body);
  const last = useRef({ text: '', key: '' });
  if (last.current.text !== text) last.current = { text, key: newKey() };
  return last.current.key;
}

/** randomUUID exists on secure pages only. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
