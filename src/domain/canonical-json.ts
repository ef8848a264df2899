// Canonical JSON: sorted object members, no whitespace. Idempotency keys store a digest of it, so that a retry with
// its members in another order still matches.

type Piece = string | { readonly value: unknown };

/** `value` must come from JSON.parse. */
export function canonicalJson(value: unknown): string {
  let text = '';
  // An explicit stack: JSON may nest deeper than the call stack allows.
  const pending: Piece[] = [{ value }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next === 'string') text += next;
    else for (const piece of piecesOf(next.value).reverse()) pending.push(piece);
  }
  return text;
}

function piecesOf(value: unknown): Piece[] {
  if (typeof value !== 'object' || value === null) return [JSON.stringify(value)];
  const comma = (index: number): string => (index === 0 ? '' : ',');
  if (Array.isArray(value)) {
    return ['[', ...value.flatMap((item: unknown, index) => [comma(index), { value: item }]), ']'];
  }
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  const written = members.flatMap(([name, member], index) => [
    `${comma(index)}${JSON.stringify(name)}:`,
    { value: member },
  ]);
  return ['{', ...written, '}'];
}
