// The fields of a request for a certificate: shared by placing an order and reissuing it. The product says which of them act.
import { h } from 'preact';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { field, group } from '../../shell/parts.ts';
import type { Schema } from '../../shell/wire.ts';
import { methodWord, policyWord, scopeWord } from '../validation/method-words.ts';
import { KeyField } from './key-field.ts';
import { allNames, type RequestForm } from './request.ts';

const { details, div, input, label, option, select, span, summary, textarea } = tags;

const t = texts({
  en: {
    names: 'Names',
    common: 'Common name',
    others: 'Further names',
    oneALine: 'One a line.',
    othersHint: 'One a line. A name that is taken away here is removed from the certificate.',
    fixed: 'This product does not let names change.',
    addOnly: 'This product lets names be added, not removed.',
    key: 'Key',
    source: 'Who holds the private key',
    caller: 'I do: I send a signing request',
    cloud: 'The service does: cloud-held, used with an access code',
    pin: 'Access code',
    pinHint: 'Asked for at every signature. It is stored nowhere, and cannot be recovered.',
    tip: 'Hint for the access code',
    hash: 'Signature digest',
    keep: 'Keep the encryption key pair (dual certificates)',
    dates: 'Validity',
    days: 'Days',
    until: 'Or until this day',
    datesHint: 'Left empty: as long as product and term allow. Longer wishes are shortened.',
    proof: 'Proof of control',
    method: 'Method',
    scope: 'Of which domain',
    same: 'As the order has it',
    persistUntil: 'The record serves until',
    keepUntil: 'As the order has it',
    clearUntil: 'No end',
    date: 'A date',
    policy: 'The record authorizes',
    further: 'Validity and proof',
  },
  zh: {
    names: '名称',
    common: '通用名称',
    others: '其他名称',
    oneALine: '每行一个。',
    othersHint: '每行一个。在此删除的名称将从证书中移除。',
    fixed: '该产品不允许更改名称。',
    addOnly: '该产品只允许增加名称，不允许删除。',
    key: '密钥',
    source: '私钥由谁持有',
    caller: '本人持有：提交签名请求',
    cloud: '由服务托管：凭访问控制码使用',
    pin: '访问控制码',
    pinHint: '每次签名时需要输入。服务不保存，无法找回。',
    tip: '访问控制码提示',
    hash: '签名摘要算法',
    keep: '保留加密密钥对（双证书）',
    dates: '有效期',
    days: '天数',
    until: '或截至日期',
    datesHint: '留空：按产品和期限允许的最长时间。超出部分会被缩短。',
    proof: '域名验证',
    method: '验证方式',
    scope: '验证范围',
    same: '沿用订单设置',
    persistUntil: '记录有效至',
    keepUntil: '沿用订单设置',
    clearUntil: '无截止时间',
    date: '指定日期',
    policy: '记录的授权范围',
    further: '有效期与验证',
  },
});

interface Props {
  readonly form: RequestForm;
  readonly product: Schema<'Product'>;
  readonly isReissue: boolean;
  readonly onChange: (change: Partial<RequestForm>) => void;
  readonly onUnsavedKey: (isUnsaved: boolean) => void;
}

export function RequestFields({ form, product, isReissue, onChange, onUnsavedKey }: Props): View {
  const isSsl = product.kind === 'ssl';
  const isCloud = form.keySource === 'sign-cloud-csc';
  const text = (
    name: keyof RequestForm,
    words: string,
    more: { readonly hint?: string; readonly type?: string } = {},
  ) =>
    field(
      words,
      (attributes) =>
        input({
          ...attributes,
          name,
          type: more.type ?? 'text',
          spellcheck: false,
          autocomplete: 'off',
          ...(more.type === 'number' && { min: 1 }),
          value: String(form[name]),
          onInput: (event) => onChange({ [name]: event.currentTarget.value }),
        }),
      more.hint,
    );
  return div(
    group(
      t('names'),
      text('commonName', t('common')),
      isSsl &&
        field(
          t('others'),
          (attributes) =>
            textarea({
              ...attributes,
              name: 'names',
              rows: Math.min(12, Math.max(3, form.names.split('\n').length)),
              spellcheck: false,
              value: form.names,
              onInput: (event) => onChange({ names: event.currentTarget.value }),
            }),
          hintOf(isReissue ? product.names_may_change : 'new'),
        ),
    ),
    group(
      t('key'),
      product.key_sources.length > 1 &&
        choice(
          { name: 'keySource', words: t('source'), value: form.keySource },
          [
            ['', t('caller')],
            ['sign-cloud-csc', t('cloud')],
          ],
          (value) => onChange({ keySource: value === '' ? '' : 'sign-cloud-csc' }),
        ),
      isCloud && [text('pin', t('pin'), { hint: t('pinHint'), type: 'password' }), text('pinHint', t('tip'))],
      !isCloud &&
        product.csr !== 'forbidden' &&
        h(KeyField, {
          csr: form.csr,
          names: allNames(form),
          rules: product.keys,
          isOptional: isReissue && product.csr === 'optional',
          onChange: (csr) => onChange({ csr }),
          onUnsaved: onUnsavedKey,
        }),
      choice(
        { name: 'signHash', words: t('hash'), value: form.signHash },
        product.sign_hashes.map((one) => [one, one.toUpperCase().replace('SHA', 'SHA-')]),
        (signHash) => onChange({ signHash }),
      ),
      product.form === 'dual' &&
        isReissue &&
        label(
          { class: 'consent' },
          input({
            type: 'checkbox',
            checked: form.keepsEncryptionKey,
            onChange: (event) => onChange({ keepsEncryptionKey: event.currentTarget.checked }),
          }),
          span(t('keep')),
        ),
    ),
    details(
      summary(t('further')),
      group(
        t('dates'),
        text('validityDays', t('days'), { type: 'number' }),
        text('expirationDate', t('until'), { type: 'date', hint: t('datesHint') }),
      ),
      isSsl && proofFields(form, product, isReissue, onChange),
    ),
  );
}

const hintOf = (change: Schema<'NameChange'> | 'new'): string =>
  t(change === 'new' ? 'oneALine' : change === 'none' ? 'fixed' : change === 'add' ? 'addOnly' : 'othersHint');

function proofFields(
  form: RequestForm,
  product: Schema<'Product'>,
  isReissue: boolean,
  onChange: Props['onChange'],
): View {
  const same: readonly [string, string][] = isReissue ? [['', t('same')]] : [];
  const until = form.persistUntil === '' || form.persistUntil === 'clear' ? form.persistUntil : 'date';
  return group(
    t('proof'),
    choice(
      { name: 'dcvMethod', words: t('method'), value: form.dcvMethod },
      [...same, ...product.dcv_methods.map((one): [string, string] => [one, methodWord(one)])],
      (dcvMethod) => onChange({ dcvMethod }),
    ),
    choice(
      { name: 'dcvScope', words: t('scope'), value: form.dcvScope },
      [...same, ...product.dcv_scopes.map((one): [string, string] => [one, scopeWord(one)])],
      (dcvScope) => onChange({ dcvScope }),
    ),
    form.dcvMethod === 'dns-persist' && [
      choice(
        { name: 'persistPolicy', words: t('policy'), value: form.persistPolicy || 'fqdn' },
        (['fqdn', 'wildcard'] as const).map((one) => [one, policyWord(one)]),
        (persistPolicy) => onChange({ persistPolicy }),
      ),
      choice(
        { name: 'persistUntil', words: t('persistUntil'), value: until },
        [
          ['', t('keepUntil')],
          ['clear', t('clearUntil')],
          ['date', t('date')],
        ],
        (value) => onChange({ persistUntil: value === 'date' ? inAYear() : value }),
      ),
      until === 'date' &&
        field(t('date'), (attributes) =>
          input({
            ...attributes,
            type: 'date',
            value: form.persistUntil,
            onInput: (event) => onChange({ persistUntil: event.currentTarget.value || 'clear' }),
          }),
        ),
    ],
  );
}

const inAYear = (): string => new Date(Date.now() + 365 * 86_400_000).toISOString().slice(0, 10);

const choice = (
  { name, words, value }: { readonly name: string; readonly words: string; readonly value: string },
  options: readonly (readonly [string, string])[],
  onChange: (value: string) => void,
): View =>
  field(words, (attributes) =>
    select(
      { ...attributes, name, value, onChange: (event) => onChange(event.currentTarget.value) },
      options.map(([one, said]) => option({ key: one, value: one }, said)),
    ),
  );
