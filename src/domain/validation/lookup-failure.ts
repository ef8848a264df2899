// What a failed lookup means for the applicant: whose fault it is, and what to do about it.
import type { Localized } from '../../kernel/locale.ts';
import type { DnsFailure, FailedLookup } from './dns.ts';
import { describeError, isOfDnssec } from './extended-error.ts';

export interface LookupProblem {
  readonly kind: 'dns_failure' | 'resolver_unreachable';
  readonly reason: Localized;
}

/** `owner` is the name whose records of the type were asked for. */
export function lookupProblem(type: 'TXT' | 'CAA', owner: string, failure: FailedLookup): LookupProblem {
  if (failure.reason === 'resolver_unreachable') return { kind: 'resolver_unreachable', reason: OUR_RESOLVER };
  const why = WHY[failure.reason](failure);
  const reason = {
    en: `The ${type} records at ${owner} could not be looked up (${failure.reason}): ${why.en}`,
    zh: `无法查询 ${owner} 的 ${type} 记录（${failure.reason}）：${why.zh}`,
  };
  return { kind: 'dns_failure', reason };
}

export const OUR_RESOLVER: Localized = {
  en: 'The resolver of this service cannot be reached. There is nothing for you to do: the operator is informed, and the check is repeated.',
  zh: '本服务的解析器无法访问。您无需处理：运营方已收到通知，系统会再次检查。',
};

const WHY: Readonly<Record<Exclude<DnsFailure, 'resolver_unreachable'>, (failure: FailedLookup) => Localized>> = {
  dns_timeout: () => ({
    en: 'its name servers did not answer in time. They must answer, even if there is no such record.',
    zh: '其域名服务器未及时应答。即使没有该记录，它们也必须应答。',
  }),
  dns_servfail: ({ extended }) => {
    const said = extended ? describeError(extended) : '';
    const en = said && ` The resolver says: ${said}.`;
    const zh = said && `解析器的说明：${said}。`;
    return extended && isOfDnssec(extended)
      ? {
          en: `DNSSEC does not verify. Correct the signatures of the zone, or its DS record at the parent.${en}`,
          zh: `DNSSEC 验证失败，请更正该区的签名，或其上级区中的 DS 记录。${zh}`,
        }
      : {
          en: `its name servers fail, or DNSSEC does not verify. Check both; name servers must answer, even if there is no such record.${en}`,
          zh: `其域名服务器出错，或 DNSSEC 验证失败。请检查两者；即使没有该记录，域名服务器也必须应答。${zh}`,
        };
  },
  dns_failure: () => ({
    en: 'the answer was refused or cannot be read. Check that its name servers answer correctly.',
    zh: '应答被拒绝或无法读取，请检查其域名服务器是否正确应答。',
  }),
};
