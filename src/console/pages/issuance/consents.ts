// The consents that a reissue needs, each by itself and in words. A tick holds for the consequences that were shown when it
// was given: other consequences take it back.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { tags } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { consent, group } from '../../shell/parts.ts';
import type { Schema } from '../../shell/wire.ts';
import type { Plan } from './plan.ts';

const { code, p, strong } = tags;

type Consent = Schema<'MissingConsent'>;

const t = texts({
  en: {
    title: 'Your consent',
    lead: 'This cannot be undone once the revocation has happened.',
    removeLead: 'Removed names. ',
    remove:
      'I know that {names} will be missing, and that the earlier certificates that carry it ({count}) will be revoked.',
    lastLead: 'Previous certificate. ',
    last: 'I know that this product revokes the previous certificate {when}, also where it is still in use.',
    atOnce: 'at once',
    later: '{hours} hours after the new one is issued',
  },
  zh: {
    title: '您的同意',
    lead: '吊销一旦发生，无法撤回。',
    removeLead: '删除名称。',
    remove: '我知道 {names} 将不再包含在证书中，含有它的旧证书（{count} 张）将被吊销。',
    lastLead: '旧证书。',
    last: '我知道该产品会在{when}吊销旧证书，即使仍在使用。',
    atOnce: '签发后立即',
    later: '新证书签发 {hours} 小时后',
  },
});

/** The fields of the request. */
const FIELDS = {
  remove_domain_not_confirmed: 'i_know_remove_domain_will_revoke_before_cert',
  revoke_last_cert_not_confirmed: 'i_know_will_revoke_last_cert',
} as const satisfies Record<Consent, string>;

export interface Consents {
  readonly isComplete: boolean;
  /** For the body of the request. */
  readonly fields: Readonly<Partial<Record<(typeof FIELDS)[Consent], true>>>;
  readonly view: ComponentChildren;
}

export function useConsents(plan: Plan | undefined): Consents {
  const [given, setGiven] = useState<Readonly<Partial<Record<Consent, string>>>>({});
  const consequences = plan ? JSON.stringify([plan.removed_names, plan.revokes]) : '';
  const needed = plan?.missing_consents ?? [];
  const isGiven = (one: Consent) => given[one] === consequences;
  return {
    isComplete: plan !== undefined && needed.every(isGiven),
    fields: Object.fromEntries(needed.filter(isGiven).map((one) => [FIELDS[one], true])),
    view:
      plan &&
      needed.length > 0 &&
      group(
        t('title'),
        p({ class: 'quiet' }, t('lead')),
        needed.map((one) =>
          consent(
            isGiven(one),
            (isTicked) => setGiven({ ...given, [one]: isTicked ? consequences : undefined }),
            ...words(one, plan),
          ),
        ),
      ),
  };
}

function words(one: Consent, plan: Plan): ComponentChildren[] {
  if (one === 'revoke_last_cert_not_confirmed') {
    const hours = Math.min(...plan.revokes.map(({ hours_after_issuance }) => hours_after_issuance));
    const when = Number.isFinite(hours) && hours > 0 ? t('later', { hours }) : t('atOnce');
    return [strong(t('lastLead')), t('last', { when })];
  }
  const [before = '', after = ''] = t('remove', { count: plan.revokes.length }).split('{names}');
  const names = plan.removed_names.flatMap((name, index) => (index === 0 ? [code(name)] : [', ', code(name)]));
  return [strong(t('removeLead')), before, ...names, after];
}
