// reseal ca csr | install | rotate | revoke | cross-sign | ceremonies, reseal crl install
import { readFileSync } from 'node:fs';
import { type IssuerKeyType, PURPOSES } from '../domain/certificate/authority.ts';
import { OPERATOR_REASONS } from '../domain/revocation/revocation.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { fileOf, KEY_URI, policyOf, purposesOf, textOption } from './ca.ts';
import { ceremonyText, ceremonyView, stillSigningText } from './ceremony.ts';
import type { Command } from './command.ts';
import { listOf, newFile, oneOf, pageSize, required, time } from './values.ts';

const KEY_TYPES = ['p256', 'p384', 'rsa', 'sm2'] as const satisfies readonly IssuerKeyType[];
const KEY_TYPE = { type: 'string', about: `${KEY_TYPES.join(', ')}` } as const;
const exitCodeFor = (stillSigning: number) => (stillSigning === 0 ? EXIT.ok : EXIT.refused);

export const caCsr: Command = {
  store: 'existing',
  about:
    'make a key for an issuing authority, and a request to have it signed elsewhere; the key stays in the store, or in a token',
  examples: ['ca csr --for public-tls issuing.csr', 'ca csr --for public-tls,private-tls --key-type rsa issuing.csr'],
  positionals: ['OUT'],
  options: {
    for: { type: 'string', multiple: true, about: `what it will sign for: ${PURPOSES.join(', ')}; repeatable` },
    'key-type': { ...KEY_TYPE, about: 'p256 (default), p384 or rsa' },
    'key-uri': KEY_URI,
  },
  async run({ positionals: [out = ''], options }, { withCustody }) {
    const purposes = purposesOf(listOf(options.for));
    const keyType = oneOf('key-type', options['key-type'], KEY_TYPES, 'p256');
    const keyUri = textOption(options['key-uri']);
    const { id, subject, ceremony } = await newFile(out, (write) =>
      withCustody(({ request }) => request({ purposes, keyType, keyUri }, write)),
    );
    return {
      json: { request: { id, subject, key_type: keyType, purposes, file: out }, ceremony: ceremonyView(ceremony) },
      text: `${out}: a request for ${subject}, on a ${keyType} key that ${keyUri === undefined ? 'stays sealed in the store' : 'cannot leave its token'}.
Have it signed, by an offline root with: reseal ca root sign ${out}. Then: ${keyUri === undefined ? 'reseal ca install CHAIN' : `reseal ca import --for ${purposes.join(',')} CHAIN --key-uri URI`}
${ceremonyText(ceremony)}`,
    };
  },
};

export const caInstall: Command = {
  store: 'existing',
  about:
    'take the certificate for a key of ca csr; it signs from now on, and what signed for its purposes before is retired',
  examples: ['ca install chain.pem'],
  positionals: ['CHAIN'],
  options: {
    policy: { type: 'string', about: 'the certificate policy of what it signs, an OID, if its chain allows several' },
  },
  async run({ positionals: [file = ''], options }, { withCustody }) {
    const chain = fileOf('CHAIN', file);
    const policy = policyOf(options.policy);
    const { issuer, ceremony, stillSigning } = await withCustody(({ install }) => install(chain, policy));
    return {
      json: {
        issuer: { id: issuer.id, key_type: issuer.keyType, purposes: issuer.purposes, policy: issuer.policy },
        ...{ still_signing: stillSigning, ceremony: ceremonyView(ceremony) },
      },
      text: `Issuer ${issuer.id} signs for ${issuer.purposes.join(', ')}. ${stillSigningText(stillSigning)}
${ceremonyText(ceremony)}`,
      exitCode: exitCodeFor(stillSigning),
    };
  },
};

export const caRotate: Command = {
  store: 'existing',
  about: 'make a new issuing authority under the same root; the previous one signs nothing but its lists any more',
  examples: ['ca rotate public-tls', 'ca rotate public-tls --key-type p384'],
  positionals: ['PURPOSE'],
  options: { 'key-type': { ...KEY_TYPE, about: `which one, if the purpose has several: ${KEY_TYPES.join(', ')}` } },
  async run({ positionals: [word = ''], options }, { withCustody }) {
    const [purpose] = purposesOf([word]);
    const keyType = oneOf('key-type', options['key-type'], KEY_TYPES, undefined);
    if (!purpose) throw new Problem(EXIT.usage, 'no purpose is named', `Use one of ${PURPOSES.join(', ')}.`);
    const { issuer, previousId, ceremony, stillSigning } = await withCustody(({ rotate }) => rotate(purpose, keyType));
    return {
      json: {
        issuer: { id: issuer.id, key_type: issuer.keyType, purposes: issuer.purposes },
        ...{ previous_id: previousId, still_signing: stillSigning, ceremony: ceremonyView(ceremony) },
      },
      text: `Issuer ${issuer.id} signs for ${purpose} with its ${issuer.keyType} key. ${previousId} is retired: its chain, CRLs and OCSP stay.
${stillSigningText(stillSigning)}
${ceremonyText(ceremony)}`,
      exitCode: exitCodeFor(stillSigning),
    };
  },
};

export const caRevoke: Command = {
  store: 'existing',
  about: 'revoke an issuing authority on the list of its root, and stop its use at once',
  examples: [
    'ca revoke ID --reason key_compromise',
    'ca revoke ID --reason superseded --out list.json   # offline root',
  ],
  positionals: ['ID'],
  options: {
    reason: { type: 'string', about: `${OPERATOR_REASONS.join(', ')} (required)` },
    out: { type: 'string', about: 'file for what an offline root has to sign: reseal ca root sign-crl' },
  },
  async run({ positionals: [id = ''], options }, { withCustody }) {
    const reason = required('reason', oneOf('reason', options.reason, OPERATOR_REASONS, undefined));
    const out = options.out === undefined ? undefined : String(options.out);
    const perform = (write: ((text: string) => void) | undefined) =>
      withCustody(({ revoke }) => revoke(id, reason, write));
    const done = out === undefined ? await perform(undefined) : await newFile(out, perform);
    const { ceremony, stillSigning, crlNumber, valid } = done;
    const listed =
      crlNumber === null
        ? `Its root is offline: have ${out ?? ''} signed with reseal ca root sign-crl, then: reseal crl install CRL`
        : `It is on list number ${crlNumber} of its root.`;
    return {
      json: {
        ...{ issuer_id: id, reason, crl_number: crlNumber, request: crlNumber === null ? out : null },
        ...{ certificates_under_it: valid, still_signing: stillSigning, ceremony: ceremonyView(ceremony) },
      },
      text: `${id} is revoked and signs nothing any more. ${listed}
${valid} certificates that are not revoked are under it: verifiers refuse them, reissue them.
${ceremonyText(ceremony)}`,
      exitCode: exitCodeFor(stillSigning),
    };
  },
};

export const caCrossSign: Command = {
  store: 'existing',
  about: 'store a certificate of another root over the key of an issuer: an alternate chain that can be fetched',
  examples: ['ca cross-sign ID other-root-chain.pem'],
  positionals: ['ID', 'CHAIN'],
  options: {},
  async run({ positionals: [id = '', file = ''] }, { withCustody }) {
    const { url, ceremony } = await withCustody(({ crossSign }) => crossSign(id, fileOf('CHAIN', file)));
    return {
      json: { issuer_id: id, url, ceremony: ceremonyView(ceremony) },
      text: `The chains of ${id} stay as they are. The alternate one: ${url}\n${ceremonyText(ceremony)}`,
    };
  },
};

export const caCeremonies: Command = {
  store: 'existing',
  about: 'list the records of acts on the authority, the newest first: what, who, when, SHA-256 of inputs and outputs',
  examples: ['ca ceremonies', 'ca ceremonies --limit 10 --json'],
  positionals: [],
  options: { limit: { type: 'string', about: 'how many (default 100)' } },
  async run({ options }, { withCustody }) {
    const found = await withCustody(({ ceremonies }) => ceremonies(pageSize(options.limit)));
    return {
      json: { ceremonies: found.map(ceremonyView) },
      text: found.length === 0 ? 'None yet.' : found.map(ceremonyText).join('\n'),
    };
  },
};

export const crlInstall: Command = {
  store: 'existing',
  about: 'publish the list of a root whose key is not here; it must show everything that is recorded as revoked',
  examples: ['crl install root.crl'],
  positionals: ['CRL'],
  options: {},
  async run({ positionals: [file = ''] }, { withCustody }) {
    fileOf('CRL', file);
    const { ceremony, nextUpdate } = await withCustody(({ installCrl }) => installCrl(readFileSync(file)));
    return {
      json: { next_update: time(nextUpdate), ceremony: ceremonyView(ceremony) },
      text: `Published. The next list is due before ${time(nextUpdate)}.\n${ceremonyText(ceremony)}`,
    };
  },
};
