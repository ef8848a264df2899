import { texts } from '../../shell/language.ts';
import type { Schema } from '../../shell/wire.ts';

export const reasonWord = texts<Schema<'RevocationReason'>>({
  en: {
    superseded: 'replaced by another certificate',
    cessation_of_operation: 'no longer used',
    key_compromise: 'the private key is no longer secret',
    affiliation_changed: 'the organization has changed',
    privilege_withdrawn: 'the right to it was withdrawn',
  },
  zh: {
    superseded: '已被新证书取代',
    cessation_of_operation: '不再使用',
    key_compromise: '私钥已泄露',
    affiliation_changed: '组织已变更',
    privilege_withdrawn: '使用权已撤销',
  },
});

export const causeWord = texts<Schema<'RevocationCause'>>({
  en: {
    name_removed: 'a reissue removed a name that it carries',
    previous_replaced: 'a reissue replaced it, and the product revokes what is replaced',
    requested: 'it was asked for',
    key_compromise: 'its key was reported as compromised',
  },
  zh: {
    name_removed: '重签删除了其中的名称',
    previous_replaced: '重签已取代该证书，产品规定吊销旧证书',
    requested: '按请求吊销',
    key_compromise: '其密钥被报告泄露',
  },
});
