// The parts that pages are made of.
import { type ComponentChildren, h } from 'preact';
import { useState } from 'preact/hooks';
import { Problem } from './api.ts';
import { tags, type View } from './html.ts';
import { texts } from './language.ts';
import type { Action, Resource } from './resource.ts';

const { a, button, code, dd, div, dt, fieldset, h1, input, label, legend, p, pre, small, span } = tags;

const t = texts({
  en: {
    loading: 'Loading…',
    copy: 'Copy',
    copied: 'Copied',
    selected: 'Press Ctrl+C',
    more: 'Next page',
    first: 'First page',
    failed: 'This did not work.',
    unreachable: 'The service did not answer in time. Check that it runs, then try again.',
    again: 'Try again',
    field: 'Field',
    request: 'Request',
  },
  zh: {
    loading: '加载中…',
    copy: '复制',
    copied: '已复制',
    selected: '请按 Ctrl+C',
    more: '下一页',
    first: '第一页',
    failed: '操作未成功。',
    unreachable: '服务未及时响应。请确认服务正在运行，然后重试。',
    again: '重试',
    field: '字段',
    request: '请求',
  },
});

export const page = (title: string, ...children: ComponentChildren[]): View =>
  div({ class: 'page' }, h1({ tabIndex: -1, id: 'title' }, title), ...children);

/** A refusal in the service's own words, which say what to do. */
export function problem(error: Error, retry?: () => void): View {
  const known = error instanceof Problem ? error : undefined;
  return div(
    { class: 'problem', role: 'alert' },
    p(known ? known.message : t('unreachable')),
    known &&
      p(
        { class: 'quiet' },
        code(known.code),
        known.field !== undefined && [' · ', t('field'), ' ', code(known.field)],
        known.requestId !== undefined && [' · ', t('request'), ' ', code(known.requestId)],
      ),
    retry && button({ type: 'button', onClick: retry }, t('again')),
  );
}

/** Shows the data of a resource, or that it loads, or why it could not be read. */
export function shown<T>(resource: Resource<T>, render: (data: T) => ComponentChildren): ComponentChildren {
  if (resource.data !== undefined) {
    return [resource.error && problem(resource.error, resource.reload), render(resource.data)];
  }
  if (resource.error) return problem(resource.error, resource.reload);
  return p({ class: 'quiet loading', role: 'status' }, t('loading'));
}

/** Says what to do where there is nothing to show. */
export const empty = (text: string, ...actions: ComponentChildren[]): View =>
  div({ class: 'empty' }, p(text), ...actions);

/** A word with a shape, so that no state is told by colour alone. The style sheet draws it: fonts lack such characters. */
export type Tone = 'good' | 'waiting' | 'bad' | 'over' | 'plain';
export const badge = (tone: Tone, word: string): View =>
  span({ class: `badge ${tone}` }, span({ class: 'shape', 'aria-hidden': 'true' }), word);

export const link = (address: string, ...children: ComponentChildren[]): View => a({ href: address }, ...children);

type CopyState = 'copy' | 'copied' | 'selected';
function CopyButton({ value, name }: { value: string; name: string | undefined }): View {
  const [state, setState] = useState<CopyState>('copy');
  const copy = async (event: Event) => {
    setState(await copyText(value, event.currentTarget as HTMLElement));
    setTimeout(() => setState('copy'), 2000);
  };
  return button(
    {
      type: 'button',
      class: 'small',
      onClick: copy,
      ...(name !== undefined && { 'aria-label': `${t(state)}: ${name}` }),
    },
    t(state),
  );
}

/** Only a secure origin has a clipboard. Anywhere else the text is at least selected. */
async function copyText(value: string, beside: HTMLElement): Promise<CopyState> {
  const shownText = beside.closest('.listing, .copyable')?.querySelector('pre, code');
  try {
    await navigator.clipboard.writeText(value);
    return 'copied';
  } catch {
    if (shownText) getSelection()?.selectAllChildren(shownText);
    return 'selected';
  }
}
export const copyButton = (value: string, name?: string): View => h(CopyButton, { value, name });

/** A short value to copy, in one line. */
export const copyable = (value: string, name?: string): View =>
  span({ class: 'copyable' }, code(value), ' ', copyButton(value, name));

/** A longer text to copy: a PEM, a command. */
export const listing = (caption: string, text: string): View =>
  div(
    { class: 'listing' },
    div({ class: 'caption' }, small(caption), copyButton(text, caption)),
    pre({ tabIndex: 0, 'aria-label': caption }, text),
  );

/** Label and value, for a <dl>. Values that are not there are not listed. */
export const fact = (name: ComponentChildren, value: ComponentChildren): ComponentChildren =>
  value === undefined || value === null || value === '' ? null : div(dt(name), dd(value));

let lastId = 0;
/** A labelled input with its hint and its error under it. */
export function field(
  name: string,
  control: (attributes: { id: string; 'aria-describedby'?: string }) => View,
  hint?: ComponentChildren,
): View {
  return h(Field, { name, control, hint });
}
function Field({
  name,
  control,
  hint,
}: {
  name: string;
  control: Parameters<typeof field>[1];
  hint?: ComponentChildren;
}): View {
  const [id] = useState(() => `field-${++lastId}`);
  return div(
    { class: 'field' },
    label({ for: id }, name),
    control({ id, ...(hint && { 'aria-describedby': `${id}-hint` }) }),
    hint && small({ id: `${id}-hint` }, hint),
  );
}

/** A choice that has to be made on purpose: unticked at first, in words. */
export const consent = (isGiven: boolean, onChange: (given: boolean) => void, ...words: ComponentChildren[]): View =>
  label(
    { class: 'consent' },
    input({ type: 'checkbox', checked: isGiven, onChange: (event) => onChange(event.currentTarget.checked) }),
    span(...words),
  );

export const group = (name: string, ...children: ComponentChildren[]): View => fieldset(legend(name), ...children);

/** A button that acts, and under it why the act failed. */
export const actButton = <A extends readonly unknown[]>(
  action: Action<A>,
  words: string,
  options: {
    readonly onClick: () => void;
    readonly isMain?: boolean;
    readonly isDanger?: boolean;
    readonly isDisabled?: boolean;
  },
): View =>
  button(
    {
      type: 'button',
      class: options.isDanger ? 'danger' : options.isMain ? 'main' : '',
      disabled: action.isRunning || options.isDisabled === true,
      'aria-busy': action.isRunning,
      onClick: options.onClick,
    },
    words,
  );

/** Pages of a list by cursor: forward, and back to the first. */
export const pager = (nextHref: string | undefined, firstHref: string | undefined): View | null =>
  nextHref || firstHref
    ? div(
        { class: 'pager' },
        firstHref && a({ href: firstHref }, t('first')),
        nextHref && a({ href: nextHref }, t('more')),
      )
    : null;
