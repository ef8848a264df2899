import { texts } from '../../shell/language.ts';
import type { Schema } from '../../shell/wire.ts';

export const methodWord = texts<Schema<'DcvMethod'>>({
  en: {
    dns: 'TXT record, new for each certificate',
    file: 'File on the web server',
    email: 'E-mail',
    'dns-persist': 'TXT record that stays (dns-persist)',
  },
  zh: {
    dns: 'TXT 记录，每张证书不同',
    file: '网站文件',
    email: '电子邮件',
    'dns-persist': '长期有效的 TXT 记录（dns-persist）',
  },
});

export const scopeWord = texts<Schema<'DcvScope'>>({
  en: { fqdn: 'Each name itself', base_domain: 'The registrable domain' },
  zh: { fqdn: '各名称本身', base_domain: '主域名' },
});

export const policyWord = texts<Schema<'PersistPolicy'>>({
  en: { fqdn: 'This name only', wildcard: 'This name, its wildcard and the names below' },
  zh: { fqdn: '仅该名称', wildcard: '该名称、其通配符及下级名称' },
});
