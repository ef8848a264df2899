// What the subject of a certificate says about its holder beside the common name. The operator vouches for it with the order,
// and every certificate of the order has it: nothing here could validate another.
import { invalid } from '../errors.ts';
import type { ProductKind } from './authority.ts';

export interface SubjectFields {
  /** ISO 3166, two capital letters. */
  readonly country: string | null;
  readonly organization: string | null;
  readonly organizationalUnit: string | null;
}

/** Upper bound of X.520 for both. */
export const MAX_ORGANIZATION = 64;

/** Null where nothing was given. Throws `invalid_parameters`, also for a product whose subjects are names of servers. */
export function requireSubject(given: SubjectFields, kind: ProductKind): SubjectFields | null {
  const country = given.country;
  const organization = given.organization?.trim() ?? null;
  const organizationalUnit = given.organizationalUnit?.trim() ?? null;
  if (country === null && organization === null && organizationalUnit === null) return null;
  if (kind === 'ssl') {
    throw invalid(
      'organization',
      'This product certifies names of servers, and no organization. Leave organization, organizational unit and country out.',
      '该产品认证的是服务器域名而非机构，请不发送机构、部门和国家。',
    );
  }
  if (country !== null && !/^[A-Z]{2}$/.test(country)) {
    throw invalid(
      'country',
      'The country is its two capital letters of ISO 3166, such as DE.',
      '国家须为 ISO 3166 的两个大写字母，例如 CN。',
    );
  }
  requireText('organization', organization);
  requireText('organizational_unit', organizationalUnit);
  return { country, organization, organizationalUnit };
}

function requireText(field: string, text: string | null): void {
  if (text === null || (text !== '' && [...text].length <= MAX_ORGANIZATION && !/\p{C}/u.test(text))) return;
  throw invalid(
    field,
    `${field} has 1 to ${MAX_ORGANIZATION} printable characters.`,
    `${field} 须为 1 至 ${MAX_ORGANIZATION} 个可打印字符。`,
  );
}

/** The attributes of a subject, from the top, as they are written. */
export const subjectAttributes = (
  { country, organization, organizationalUnit }: SubjectFields,
  commonName: string,
): [type: string, value: string][] =>
  [
    ['C', country] as const,
    ['O', organization] as const,
    ['OU', organizationalUnit] as const,
    ['CN', commonName] as const,
  ].flatMap(([type, value]) => (value === null ? [] : [[type, value]]));

export const NO_FIELDS: SubjectFields = { country: null, organization: null, organizationalUnit: null };
