// What a reissue will do, before it is done: asked for while the reader types, the last answer wins.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, link, problem } from '../../shell/parts.ts';
import { href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { reasonWord } from '../revocation/words.ts';
import { resultBadge } from '../validation/check-words.ts';
import { axisLabels, axisOf, lifeBar, lifeDays } from './validity.ts';

const { code, div, h2, h3, li, p, section, span, ul } = tags;

const t = texts({
  en: {
    title: 'What will happen',
    thinking: 'Asking the service…',
    names: 'Names',
    added: 'added',
    removed: 'removed',
    kept: 'unchanged: {count}',
    proof: 'Proof',
    issued: 'The certificate is issued at once.',
    allProven: 'Every name is proven: the certificate is issued at once.',
    needs: 'The certificate waits until these names are proven:',
    caa: 'CAA does not permit these names now: the certificate would wait.',
    revokes: 'Revocations',
    revokesNone: 'Nothing is revoked.',
    atOnce: 'as soon as the new one is issued',
    later: '{hours} hours after the new one is issued',
    denied: 'This key may not revoke. Use a standard key of the account for a reissue that revokes.',
    validity: 'Validity',
  },
  zh: {
    title: '将会发生什么',
    thinking: '正在询问服务…',
    names: '名称',
    added: '新增',
    removed: '删除',
    kept: '不变：{count} 个',
    proof: '验证',
    issued: '立即签发证书。',
    allProven: '所有名称均已验证：立即签发。',
    needs: '以下名称验证后才会签发：',
    caa: 'CAA 目前不允许以下名称：证书将等待。',
    revokes: '吊销',
    revokesNone: '不会吊销任何证书。',
    atOnce: '新证书签发后立即吊销',
    later: '新证书签发 {hours} 小时后吊销',
    denied: '该密钥无权吊销。请使用账户的标准密钥进行会导致吊销的重签。',
    validity: '有效期',
  },
});

export type Plan = Schema<'ReissuePlan'>;
const TYPING_MS = 350;

export interface Planned {
  readonly plan: Plan | undefined;
  readonly error: Error | undefined;
  /** The plan is of an earlier body. */
  readonly isStale: boolean;
}

/** One request at a time: a new one abandons the one before, and typing delays it. */
export function usePlan(orderId: string, body: unknown): Planned {
  const text = JSON.stringify(body);
  const [answer, setAnswer] = useState<{ plan?: Plan | undefined; error?: Error | undefined; of?: string }>({});
  const isFirst = useRef(true);
  useEffect(() => {
    const abandoned = new AbortController();
    const ask = async () => {
      try {
        const { plan } = await account<Data<'ReissueResponse'>>('POST', `orders/${orderId}/reissue`, {
          body: JSON.parse(text),
          query: { dry_run: 'true' },
          signal: abandoned.signal,
        });
        if (!abandoned.signal.aborted) setAnswer({ plan, of: text });
      } catch (error) {
        if (!abandoned.signal.aborted) setAnswer({ error: error as Error, of: text });
      }
    };
    const timer = setTimeout(ask, isFirst.current ? 0 : TYPING_MS);
    isFirst.current = false;
    return () => {
      clearTimeout(timer);
      abandoned.abort();
    };
  }, [orderId, text]);
  return { plan: answer.plan, error: answer.error, isStale: answer.of !== text };
}

export function PlanView({ plan, error, isStale }: Planned): View {
  return section(
    { class: 'plan', 'aria-label': t('title'), 'aria-busy': isStale },
    h2(t('title')),
    isStale && p({ class: 'quiet loading' }, t('thinking')),
    error && problem(error),
    plan && planView(plan),
    // Spoken once the answer is there, not at every key.
    span({ class: 'heard', role: 'status' }, isStale ? '' : plan ? summaryOf(plan) : ''),
  );
}

const summaryOf = (plan: Plan): string =>
  [
    `${t('added')}: ${plan.added_names.length}`,
    `${t('removed')}: ${plan.removed_names.length}`,
    `${t('revokes')}: ${plan.revokes.length}`,
  ].join(', ');

function namesAndProof(plan: Plan): ComponentChildren {
  const kept = plan.names.filter((name) => !plan.added_names.includes(name));
  // A holder has no names to prove.
  if (plan.names.length === 0) return [h3(t('proof')), p(badge('good', t('issued')))];
  return [
    h3(t('names')),
    ul(
      { class: 'names diff' },
      plan.added_names.map((name) =>
        li({ key: name, class: 'added' }, span({ 'aria-hidden': 'true' }, '+'), code(name), ' ', t('added')),
      ),
      plan.removed_names.map((name) =>
        li({ key: name, class: 'removed' }, span({ 'aria-hidden': 'true' }, '−'), code(name), ' ', t('removed')),
      ),
      kept.length > 0 &&
        li(
          { class: 'kept' },
          span({ 'aria-hidden': 'true' }, '='),
          span({ class: 'quiet' }, t('kept', { count: kept.length })),
        ),
    ),
    h3(t('proof')),
    plan.needs_validation.length === 0
      ? p(badge('good', t('allProven')))
      : [p(badge('waiting', t('needs'))), ul(plan.needs_validation.map((name) => li({ key: name }, code(name))))],
    plan.caa_problems.length > 0 && [
      p(t('caa')),
      ul(
        plan.caa_problems.map(({ domain, result, message }) =>
          li({ key: domain }, code(domain), ' ', resultBadge(result), ' ', message),
        ),
      ),
    ],
  ];
}

function planView(plan: Plan): ComponentChildren {
  const life = { from: Date.parse(plan.not_before), to: Date.parse(plan.not_after) };
  return [
    namesAndProof(plan),
    h3(t('revokes')),
    plan.revokes.length === 0
      ? p(badge('good', t('revokesNone')))
      : ul(
          { class: 'names' },
          plan.revokes.map(({ certificate_id, reason, hours_after_issuance: hours }) =>
            li(
              { key: certificate_id },
              badge('bad', hours === 0 ? t('atOnce') : t('later', { hours })),
              div(link(href(['certificates', certificate_id]), code(certificate_id))),
              span({ class: 'quiet' }, reasonWord(reason)),
            ),
          ),
        ),
    plan.missing_permissions.length > 0 && p({ class: 'problem' }, t('denied')),
    h3(t('validity')),
    lifeBar(life, axisOf([life])),
    axisLabels(axisOf([life])),
    p(moment(plan.not_before), ' – ', moment(plan.not_after), ' ', span({ class: 'quiet' }, lifeDays(life))),
  ];
}
