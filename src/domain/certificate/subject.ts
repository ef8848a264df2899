// What the subject of a certificate says about its holder beside the common name. The operator vouches for it with the order,
// and every certificate of the order has it: nothing here could validate another.

export interface SubjectFields {
  /** ISO 3166, two capital letters. */
  readonly country: string | null;
  readonly organization: string | null;
  readonly organizationalUnit: string | null;
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
