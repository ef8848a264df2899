// What certificates of each purpose carry beside their names: extended key usages, and the policy of our own validation.
import type { Purpose } from '../../domain/certificate/authority.ts';

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const CODE_SIGNING = '1.3.6.1.5.5.7.3.3';
/** RFC 9336, and what Microsoft's programs look for. */
const DOCUMENT_SIGNING = '1.3.6.1.5.5.7.3.36';
const MICROSOFT_DOCUMENT_SIGNING = '1.3.6.1.4.1.311.10.3.12';
const DOMAIN_VALIDATED = '2.23.140.1.2.1';
export const ANY_POLICY = '2.5.29.32.0';

/** An issuer has all of them. Of an imported one the optional may be missing: its certificates do without. */
export const EKU: Readonly<
  Record<Purpose, { readonly required: readonly string[]; readonly optional: readonly string[] }>
> = {
  // Public root programs no longer allow clientAuth in server certificates.
  'public-tls': { required: [SERVER_AUTH], optional: [] },
  'private-tls': { required: [SERVER_AUTH], optional: [CLIENT_AUTH] },
  'client-auth': { required: [CLIENT_AUTH], optional: [] },
  'code-signing': { required: [CODE_SIGNING], optional: [] },
  'document-signing': { required: [DOCUMENT_SIGNING], optional: [MICROSOFT_DOCUMENT_SIGNING] },
};

export const OWN_POLICY: Readonly<Partial<Record<Purpose, string>>> = { 'public-tls': DOMAIN_VALIDATED };
