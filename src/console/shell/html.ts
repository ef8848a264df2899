// Elements as functions: div({ class: 'card' }, h2('Orders')). The compiler checks tags, attributes and children, which it
// cannot do in template strings, and no build step is needed, as for JSX. Strings become text nodes, never markup.
import { type ComponentChildren, h, type JSX } from 'preact';

/** What a component returns. */
export type View = JSX.Element;

type Maker<Attributes> = (first?: Attributes | ComponentChildren, ...rest: ComponentChildren[]) => View;
type Tags = { readonly [Tag in keyof JSX.IntrinsicElements]: Maker<JSX.IntrinsicElements[Tag]> };

/** Nodes of Preact have no constructor, arrays and signals have their own. */
const isAttributes = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && value.constructor === Object;

function maker(tag: string): Maker<Record<string, unknown>> {
  return (first, ...rest) =>
    isAttributes(first) ? h(tag, first, ...rest) : h(tag, null, first as ComponentChildren, ...rest);
}

export const tags = new Proxy({}, { get: (_, tag) => maker(String(tag)) }) as Tags;
