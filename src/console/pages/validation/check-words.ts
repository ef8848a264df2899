// Results of a check in words. The service's own message says what to do; these are its headings.
import type { View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, type Tone } from '../../shell/parts.ts';
import type { Schema } from '../../shell/wire.ts';

type Result = Schema<'CheckResult'>;

const word = texts<Result>({
  en: {
    ok: 'Seen',
    no_record: 'No record yet',
    wrong_value: 'Another value',
    malformed: 'Record is malformed',
    unauthorized: 'Does not authorize',
    dns_failure: 'DNS fails',
    resolver_unreachable: 'Our resolver is down',
    http_failure: 'Web server fails',
    private_address: 'Private address',
    caa_forbidden: 'CAA forbids it',
    perspectives_differ: 'Not seen everywhere',
  },
  zh: {
    ok: '已看到',
    no_record: '尚无记录',
    wrong_value: '值不符',
    malformed: '记录格式错误',
    unauthorized: '未授权',
    dns_failure: 'DNS 失败',
    resolver_unreachable: '解析器不可用',
    http_failure: '网站访问失败',
    private_address: '内网地址',
    caa_forbidden: 'CAA 禁止',
    perspectives_differ: '并非处处可见',
  },
});

/** What the applicant waits for, as opposed to what is wrong. */
const toneOf = (result: Result): Tone =>
  result === 'ok' ? 'good' : result === 'no_record' || result === 'perspectives_differ' ? 'waiting' : 'bad';

export const resultBadge = (result: Result): View => badge(toneOf(result), word(result));

const permitted = texts({ en: { ok: 'Permits it' }, zh: { ok: '允许' } });
/** CAA is not there to be seen, but to permit. */
export const caaBadge = (result: Result): View =>
  result === 'ok' ? badge('good', permitted('ok')) : resultBadge(result);
