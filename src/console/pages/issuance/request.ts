// What a form asks for, and the body that asks for it. Fields that are left empty are left out: the service then decides.
import type { Schema } from '../../shell/wire.ts';

export interface RequestForm {
  readonly commonName: string;
  /** One name a line. */
  readonly names: string;
  readonly csr: string;
  /** '' is the holder's own key. */
  readonly keySource: '' | 'sign-cloud-csc';
  readonly pin: string;
  readonly pinHint: string;
  readonly signHash: string;
  readonly keepsEncryptionKey: boolean;
  readonly validityDays: string;
  readonly expirationDate: string;
  readonly dcvMethod: string;
  readonly dcvScope: string;
  /** '' keeps what the order has, 'clear' removes it, else a date. */
  readonly persistUntil: string;
  readonly persistPolicy: string;
}

export const EMPTY_FORM: RequestForm = {
  ...{ commonName: '', names: '', csr: '', keySource: '', pin: '', pinHint: '', signHash: '', validityDays: '' },
  ...{ keepsEncryptionKey: false, expirationDate: '', dcvMethod: '', dcvScope: '', persistUntil: '' },
  persistPolicy: '',
};

/** Names are separated by anything that no name has. */
export const namesIn = (text: string): string[] => [...new Set(text.split(/[\s,;]+/).filter(Boolean))];

/** Every name asked for, the common name first. */
export const allNames = ({ commonName, names }: RequestForm): string[] => [
  ...new Set([commonName.trim(), ...namesIn(names)].filter(Boolean)),
];

export function formOf(order: Schema<'Order'>, product: Schema<'Product'> | undefined): RequestForm {
  return {
    ...EMPTY_FORM,
    commonName: order.common_name ?? '',
    names: order.dns_names.filter((name) => name !== order.common_name).join('\n'),
    signHash: product?.sign_hashes[0] ?? 'sha256',
    keySource: product?.key_sources.includes('caller') === false ? 'sign-cloud-csc' : '',
  };
}

export type Body = Omit<
  Schema<'ReissueRequest'>,
  'i_know_remove_domain_will_revoke_before_cert' | 'i_know_will_revoke_last_cert'
>;

/** The compiler knows the words; the service judges what a field has. */
const word = <Word extends string>(text: string): Word => text as Word;

export function bodyOf(form: RequestForm, isSsl: boolean): Body {
  const isCloud = form.keySource === 'sign-cloud-csc';
  const isPersist = form.dcvMethod === 'dns-persist';
  const days = Number(form.validityDays);
  return {
    certificate: {
      ...(form.commonName.trim() !== '' && { common_name: form.commonName.trim() }),
      ...(isSsl && { dns_names: namesIn(form.names) }),
      ...(!isCloud && form.csr.trim() !== '' && { csr: form.csr.trim() }),
      ...(isCloud && { csr_from: form.keySource }),
      ...(form.keepsEncryptionKey && { un_modify_key: true }),
      ...(form.validityDays !== '' && Number.isFinite(days) && { validity_days: days }),
      ...(form.expirationDate !== '' && { custom_expiration_date: form.expirationDate }),
      sign_hash: word(form.signHash),
    },
    ...(form.dcvMethod !== '' && { dcv_method: word(form.dcvMethod) }),
    ...(form.dcvScope !== '' && { dcv_scope: word(form.dcvScope) }),
    ...(isPersist && form.persistUntil !== '' && { persist_until: persistUntil(form.persistUntil) }),
    ...(isPersist && form.persistPolicy !== '' && { persist_policy: word(form.persistPolicy) }),
    ...(isCloud && form.pin !== '' && { sign_key_pin: form.pin }),
    ...(isCloud && form.pinHint !== '' && { sign_key_pin_tip: form.pinHint }),
  };
}

const persistUntil = (text: string): number =>
  text === 'clear' ? 0 : Math.floor(Date.parse(`${text}T23:59:59Z`) / 1000) || 0;
