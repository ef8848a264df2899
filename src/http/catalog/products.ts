// GET /openapi/v3/products: what can be ordered, and what each product allows. An extension of the specification.
import Type from 'typebox';
import {
  CERTIFICATE_FORMS,
  CSR_RULES,
  NAME_CHANGES,
  OFFERED_DCV_METHODS,
  OFFERED_KEY_SOURCES,
  type Product,
} from '../../domain/catalog/products.ts';
import { PRODUCT_KINDS, TRUSTS } from '../../domain/certificate/authority.ts';
import { PRIVATE_NAMES } from '../../domain/certificate/names.ts';
import { DCV_SCOPES } from '../../domain/certificate/order.ts';
import { KEY_TYPES } from '../../domain/certificate/public-key.ts';
import { SIGN_HASHES } from '../../domain/certificate/sign-hash.ts';
import { inLocale, type Locale } from '../../kernel/locale.ts';
import type { Api } from '../front/api.ts';
import { localeOf } from '../front/failures.ts';
import { requireKnown } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { list, word } from '../front/values.ts';

const words = <const T extends string>(all: readonly T[]) => list(Type.Unsafe<T>({ type: 'string', enum: [...all] }));

/** With the keys of the products file. */
const View = Type.Object(
  {
    id: Type.String(),
    aliases: list(Type.Integer(), { description: 'Numbers that stand for the id in orders.' }),
    name: Type.String({ description: 'For people, in English or Chinese.' }),
    kind: word(
      'ProductKind',
      PRODUCT_KINDS,
      'Only `ssl` certifies DNS names, which must be proven; the others a holder, whom the operator vouches for.',
    ),
    trust: word(
      'Trust',
      TRUSTS,
      '`public`: held to the rules of public trust. Who trusts the certificates depends on the root of the issuer: one that this service made is trusted only where it was distributed.',
    ),
    form: word('CertificateForm', CERTIFICATE_FORMS, '`dual`: a signing and an encryption certificate.'),
    names_may_change: word('NameChange', NAME_CHANGES, 'What a reissue may do to the names.'),
    revokes_previous_on_reissue: Type.Boolean(),
    revocation_grace_hours: Type.Integer({ description: 'From the issuance of a reissue to that revocation.' }),
    revocation_may_be_put_off: Type.Boolean(),
    csr: word('CsrRule', CSR_RULES, 'On a reissue. The first certificate on your own key always needs one.'),
    key_sources: words(OFFERED_KEY_SOURCES),
    keys: list(
      Type.Object(
        { type: word('KeyType', KEY_TYPES), min_bits: Type.Integer(), max_bits: Type.Integer() },
        { title: 'KeyRule' },
      ),
    ),
    sign_hashes: words(SIGN_HASHES),
    allows_wildcard: Type.Boolean(),
    private_names: list(
      word(
        'PrivateName',
        PRIVATE_NAMES,
        '`internal`: single-label and reserved names. `ip`: IP addresses, by `file` only.',
      ),
    ),
    dcv_methods: words(OFFERED_DCV_METHODS),
    dcv_scopes: words(DCV_SCOPES),
    max_validity_days: Type.Integer({ description: 'Of what is issued now; it shrinks on dates that are known.' }),
    short_lived: Type.Boolean({ description: 'Certificates do not say where their status is found.' }),
    requires_lint: Type.Boolean({ description: 'Certificates are signed only if the operator’s linters pass them.' }),
    term_days: Type.Integer({ description: 'How long an order may be reissued.' }),
    reuse_days: Type.Integer({ description: 'How long a proof of control serves now.' }),
  },
  { title: 'Product' },
);
const List = Type.Object({ products: list(View) });
const Query = Type.Object({});

export function productOperation(api: Api, offered: () => readonly Product[]): void {
  api.get(
    '/products',
    {
      config: { action: 'read' },
      schema: {
        operationId: 'listProducts',
        summary: 'List the products',
        description: 'All that can be ordered, the built-in ones first, and what each allows.',
        tags: ['catalog'],
        'x-reseal-extension': true,
        querystring: Query,
        errors: [],
        response: answers('ProductList', List),
      },
    },
    async (request) => {
      requireKnown(request.query, Query);
      return success({ products: offered().map((one) => viewOf(one, localeOf(request))) });
    },
  );
}

const viewOf = (product: Product, locale: Locale): Type.Static<typeof View> => ({
  id: product.id,
  aliases: product.aliases,
  name: inLocale(product.name, locale),
  kind: product.kind,
  trust: product.trust,
  form: product.form,
  names_may_change: product.namesMayChange,
  revokes_previous_on_reissue: product.revokesPreviousOnReissue,
  revocation_grace_hours: product.revocationGraceHours,
  revocation_may_be_put_off: product.revocationMayBePutOff,
  csr: product.csr,
  key_sources: product.keySources,
  keys: product.keys.map(({ type, minBits, maxBits }) => ({ type, min_bits: minBits, max_bits: maxBits })),
  sign_hashes: product.signHashes,
  allows_wildcard: product.allowsWildcard,
  private_names: product.privateNames,
  dcv_methods: product.dcvMethods,
  dcv_scopes: product.dcvScopes,
  max_validity_days: product.maxValidityDays,
  short_lived: product.shortLived,
  requires_lint: product.requiresLint,
  term_days: product.termDays,
  reuse_days: product.reuseDays,
});
