// One text for every way to write the same JSON value: members of objects in one order, no blanks. It is what an
// idempotency key remembers of a body, and clients write the members of an object in whatever order they like.

type Piece = string | { readonly value: unknown };

/** `value` came out of JSON.parse. */
export function canonicalJson(value: unknown): string {
  let text = '';
  // A stack of our own: parsed values may be nested deeper than function calls may be.
  const due: Piece[] = [{ value }];
  for (let next = due.pop(); next !== undefined; next = due.pop()) {
    if (typeof next === 'string') text += next;
    else for (const piece of piecesOf(next.value).reverse()) due.push(piece);
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
