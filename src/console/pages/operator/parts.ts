// Parts that several of the operators' pages have.
import type { ComponentChildren } from 'preact';
import { h } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, fact, link, problem, type Tone } from '../../shell/parts.ts';
import type { Action } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { session } from '../../shell/session.ts';
import { distance, moment } from '../../shell/time.ts';
import type { Entry, Story } from './wire.ts';

const { button, code, dd, div, dl, dt, h2, input, li, ol, p, span, table, tbody, td, th, thead, tr } = tags;

const t = texts({
  en: {
    viewOnly: 'You may look. To change something, an operator with the role “act” is needed.',
    cancel: 'Cancel',
    account: 'Account',
    suspended: 'suspended',
    product: 'Product',
    names: 'Names',
    ownId: 'Its own id',
    nextCheck: 'Next check',
    waitsUntil: 'Waits until',
    by: 'by {actor}',
    request: 'request {id}',
    happened: 'What happened',
    open: 'Whole story',
    nothing: 'Nothing is recorded yet.',
  },
  zh: {
    viewOnly: '您只能查看。变更需要具有“操作”权限的运维人员。',
    cancel: '取消',
    account: '账户',
    suspended: '已停用',
    product: '产品',
    names: '名称',
    ownId: '自定义 ID',
    nextCheck: '下次检查',
    waitsUntil: '等待至',
    by: '操作者 {actor}',
    request: '请求 {id}',
    happened: '经过',
    open: '完整经过',
    nothing: '暂无记录。',
  },
});

export const mayAct = (): boolean => session.value?.operator?.role === 'act';

/** Where acts would be, for those who may only look. */
export const viewOnly = (): View | null => (mayAct() ? null : p({ class: 'quiet' }, t('viewOnly')));

/** Calls `act` again and again while the page is shown and seen. */
export function useEvery(ms: number, act: () => void): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

interface ConfirmedProps {
  readonly words: string;
  /** What will happen. */
  readonly question: ComponentChildren;
  readonly confirm: string;
  readonly action: Action<readonly []>;
  /** Said to screen readers beside the words: what the act is about. */
  readonly about?: string;
  /** Beside others in a table. */
  readonly isSmall?: boolean;
}

/** A button whose act is asked about in place before it is done. */
export const confirmed = (props: ConfirmedProps): View => h(Confirmed, props);

function Confirmed({ words, question, confirm, action, about, isSmall }: ConfirmedProps): View {
  const [isAsked, setAsked] = useState(false);
  const panel = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isAsked) panel.current?.focus();
  }, [isAsked]);
  const close = () => {
    setAsked(false);
    action.reset();
    // The button is there again after this render.
    queueMicrotask(() => opener.current?.focus());
  };
  if (!isAsked) {
    return button(
      { type: 'button', class: isSmall ? 'small' : '', ref: opener, onClick: () => setAsked(true) },
      words,
      about !== undefined && span({ class: 'heard' }, ` ${about}`),
    );
  }
  return div(
    { class: 'ask', ref: panel, tabIndex: -1, role: 'group', 'aria-label': words },
    p(question),
    div(
      { class: 'actions' },
      button(
        {
          type: 'button',
          class: 'danger',
          disabled: action.isRunning,
          'aria-busy': action.isRunning,
          onClick: async () => (await action.run()) && setAsked(false),
        },
        confirm,
      ),
      button({ type: 'button', onClick: close }, t('cancel')),
    ),
    action.error && problem(action.error),
  );
}

/** Its name, which may be empty for acts, and what a row has in it. */
type Column<Row> = readonly [name: string, cell: (row: Row) => ComponentChildren];

/** A table that becomes cards where there is no room; there each value has its column's name beside it. */
export const tableOf = <Row>(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  columns: readonly Column<Row>[],
): View =>
  div(
    { class: 'table' },
    table(
      { class: 'cards' },
      thead(
        tr(columns.map(([name], index) => (name === '' ? td({ key: index }) : th({ key: index, scope: 'col' }, name)))),
      ),
      tbody(
        rows.map((row) =>
          tr(
            { key: keyOf(row) },
            columns.map(([name, cell], index) =>
              td({ key: index, ...(name !== '' && index > 0 && { 'data-label': name }) }, cell(row)),
            ),
          ),
        ),
      ),
    ),
  );

interface NumberField {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly max: number;
}
export const numberInput =
  ({ value, onChange, max }: NumberField) =>
  (attributes: { id: string }): View =>
    input({
      ...attributes,
      ...{ type: 'number', inputMode: 'numeric', min: 0, max, step: 1, value },
      onInput: (event) => onChange(event.currentTarget.value),
    });

export const accountLink = (id: string, name: string): View => link(href(['accounts', id]), name);
export const storyLink = (orderId: string): View => link(href(['story', orderId]), code({ class: 'id' }, orderId));

/** Details as name and value, without those that are empty. */
export const detailsOf = (details: Entry['details']): View | null => {
  const known = Object.entries(details).filter(([, value]) => value !== null && value !== '');
  return known.length === 0
    ? null
    : span(
        { class: 'details' },
        known.map(([name, value]) => span({ key: name }, `${name} `, code(String(value)))),
      );
};

const TONES: Readonly<Record<string, Tone>> = {
  issued: 'good',
  issuing: 'waiting',
  domain_verifing: 'waiting',
  reissuing: 'waiting',
  revoked: 'over',
  canceled: 'over',
  expired: 'over',
  rejected: 'bad',
};
/** Orders have the interface's own words: operators speak with callers who see them. */
export const orderStatus = (status: string): View => badge(TONES[status] ?? 'plain', status);

/** Why names are not validated, in the service's words. */
export const problemsOf = (problems: readonly { name: string; problem: string; reason: string }[]): View | null =>
  problems.length === 0
    ? null
    : dl(
        { class: 'problems' },
        problems.map(({ name, problem: word, reason }) =>
          div({ key: name }, dt(code(name), ' ', span({ class: 'quiet' }, word)), dd(reason)),
        ),
      );

/** An order with all that happened to it, the oldest first. */
export function storyOf({ account, order, waiting, events }: Story, isLinked = false): View {
  return div(
    { class: 'story' },
    h2(isLinked ? link(href(['story', order.id]), title(order)) : title(order), ' ', orderStatus(order.status)),
    dl(
      fact(t('account'), [
        accountLink(account.id, account.name),
        account.suspended_at !== null && [' ', badge('bad', t('suspended'))],
      ]),
      fact(t('product'), order.product),
      fact(t('ownId'), order.alternative_id && code(order.alternative_id)),
      fact(t('names'), order.names.join(', ')),
      waiting && fact(t('nextCheck'), [moment(waiting.next_check_at), ` (${distance(waiting.next_check_at)})`]),
      waiting && fact(t('waitsUntil'), moment(waiting.expires_at)),
    ),
    waiting && problemsOf(waiting.problems),
    events.length === 0 ? p({ class: 'quiet' }, t('nothing')) : timeline(events),
  );
}

const title = (order: Story['order']): string => order.common_name ?? order.names[0] ?? order.id;

const timeline = (events: Story['events']): View =>
  ol(
    { class: 'timeline', 'aria-label': t('happened') },
    events.map(({ at, event, actor, request_id: request, details }, index) =>
      li(
        { key: index },
        moment(at),
        div(
          span({ class: 'event' }, event),
          actor !== null && span({ class: 'quiet' }, ' ', t('by', { actor })),
          detailsOf(details),
          request !== null && span({ class: 'quiet' }, t('request', { id: request })),
        ),
      ),
    ),
  );
