// What independent linters say about every kind of authority, certificate, CRL, OCSP response and responder: zlint and
// pkilint, where they are installed; and whether openssl, GnuTLS and Go verify each chain for its purpose, and for no other.
import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DerReader } from '../src/adapters/der/reader.ts';
import { PRODUCTS as BUILT_IN } from '../src/domain/catalog/products.ts';
import { asInFile } from '../src/domain/catalog/products-file.ts';
import { pem } from '../src/domain/certificate/pem.ts';
import { NO_FIELDS } from '../src/domain/certificate/subject.ts';
import { newFolder, TestApp } from '../test/support/app.ts';
import { newDualOrder, newSm2Csr } from '../test/support/dual.ts';
import { certificate, newOrder, type OrderRequest } from '../test/support/orders.ts';
import { productsFile } from '../test/support/products.ts';
import { certIdOf, derOf, ocspRequest, postOcsp } from '../test/support/status.ts';
import type { Campaign } from './campaign.ts';
import { type ChainPurpose, chainVerifiers } from './chain-verifiers.ts';

const ZLINT = process.env.ZLINT ?? 'zlint';
/** The folder of pkilint's programs, such as that of a virtual environment; empty for those on the path. */
const PKILINT = process.env.PKILINT ?? '';
const GMSSL = process.env.GMSSL ?? 'gmssl';

const PRODUCTS = [
  { product: 'ssl-dv', isPublic: true, kind: 'ssl', commonName: 'www.example.com' },
  { product: 'tls-private', isPublic: false, kind: 'ssl', commonName: 'www.example.com' },
  { product: 'tls-private', isPublic: false, kind: 'ssl', commonName: '10.1.2.3', dnsNames: ['fd12::1'] },
  { product: 'tls-private', isPublic: false, kind: 'ssl', commonName: 'fd12::1', dnsNames: ['db.internal', 'host'] },
  { product: 'short-tls-private', isPublic: false, kind: 'ssl', commonName: 'www.example.com' },
  { product: 'client-auth', isPublic: false, kind: 'client', commonName: 'Jane Doe' },
  { product: 'code-signing', isPublic: false, kind: 'code', commonName: 'Jane Doe' },
  { product: 'document-signing', isPublic: false, kind: 'document', commonName: 'Jane Doe' },
] as const satisfies readonly (Pick<OrderRequest, 'commonName' | 'dnsNames'> & {
  readonly product: string;
  readonly isPublic: boolean;
  readonly kind: ChainPurpose;
})[];
/** No certificate is for both. */
const OTHER_PURPOSE = { ssl: 'code', client: 'ssl', code: 'ssl', document: 'ssl' } as const;
const SUBJECT = { country: 'DE', organization: 'Müller & Söhne', organizationalUnit: 'R&D' };

const shortLived = (id: string) => ({
  ...asInFile(BUILT_IN.find((one) => one.id === id)!),
  ...{ id: `short-${id}`, aliases: [], short_lived: true, max_validity_days: 7 },
});

const KEYS = [
  { key: 'p256', signHash: 'sha256' },
  { key: 'p384', signHash: 'sha384' },
  { key: 'rsa2048', signHash: 'sha256' },
  { key: 'ed25519', signHash: 'sha256' },
] as const;

/** Errors that are no fault of a private profile: rules of public TLS that it does not claim to follow. */
const EXPLAINED: readonly RegExp[] = [
  // It asserts no policy of the CA/Browser Forum, because it is not validated by its rules alone.
  /^e_sub_cert_cert_policy_empty$/,
  /^e_sub_cert_certificate_policies_missing$/,
  // Ed25519, which the public root programs do not list.
  /^e_algorithm_identifier_improper_encoding$/,
  // Addresses and names of private networks, which are what it is for.
  /^e_(ext_san|subject)_contains_reserved_ip$/,
  /^e_dnsname_(contains_bare_iana_suffix|not_valid_tld)$/,
  /^pkix\.invalid_domain_name_syntax .*: "host"$/,
];

type Lint = (file: string) => string[];

export const linters: Campaign = {
  about:
    'zlint, pkilint, openssl, GnuTLS, Go and GmSSL on what the service signs; $ZLINT, $PKILINT and $GMSSL say where they are (N is 1)',
  defaultN: 1,
  async run(_n, print) {
    const isHere = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;
    const hasZlint = isHere(ZLINT, '-version');
    const hasPkilint = isHere(join(PKILINT, 'lint_pkix_cert'), '--help');
    print(`zlint ${hasZlint ? 'is' : 'is not'} here, pkilint ${hasPkilint ? 'is' : 'is not'} here`);
    const zlint: Lint = (file) => (hasZlint ? zlintErrors(file) : []);
    const pkilint =
      (program: string, ...options: string[]): Lint =>
      (file) =>
        hasPkilint ? pkilintErrors(program, [...options, file]) : [];
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-lint-'));
    await using app = new TestApp(newFolder());
    // The tools look at the clock.
    app.advance(Date.now() - app.now());
    await app.start({
      ...{ RESEAL_PKI_URL: 'http://pki.example.com', RESEAL_CA_COUNTRY: 'DE' },
      RESEAL_PRODUCTS_FILE: productsFile(shortLived('tls-private')),
    });
    // The tools run when everything is fetched: meanwhile nothing else runs here, and kept connections would be closed.
    const questions: (() => string[])[] = [];
    let judged = 0;
    const judge = (name: string, text: string, ...by: Lint[]): string => {
      const file = join(folder.path, name);
      writeFileSync(file, text);
      questions.push(() => by.flatMap((lint) => lint(file)).map((error) => `${name}: ${error}`));
      judged += 1;
      return file;
    };
    const verifiers = chainVerifiers(folder.path);
    print(`chains are verified by ${verifiers.map(({ name }) => name).join(', ')}`);
    for (const { product, isPublic, kind, commonName, ...more } of PRODUCTS) {
      for (const { key, signHash } of KEYS) {
        if (key === 'ed25519' && !/tls-private|client-auth/.test(product)) continue;
        const subject = kind === 'ssl' ? NO_FIELDS : SUBJECT;
        const order = await newOrder(app, { product, key, signHash, commonName, subject, ...more });
        const { pem: leaf, ica_pem: issuing, root_pem: root } = await certificate(app, order, order.certificateId);
        const name = `${product} ${commonName} ${key}`;
        const serverAuth = pkilint('lint_cabf_serverauth_cert', '-d');
        const cert = isPublic ? serverAuth : pkilint('lint_pkix_cert');
        const leafFile = judge(`${name} leaf.pem`, leaf, explained(zlint, isPublic), explained(cert, isPublic));
        const issuingFile = judge(`${name} issuing.pem`, issuing, zlint, cert);
        const rootFile = judge(`${name} root.pem`, root, zlint, pkilint('lint_cabf_serverauth_cert', '-t', 'ROOT-CA'));
        const chain = { leaf: leafFile, issuing: issuingFile, root: rootFile };
        const host = kind === 'ssl' ? commonName : undefined;
        const other = OTHER_PURPOSE[kind];
        for (const { name: program, knows, faults } of verifiers) {
          questions.push(() => {
            const fault = faults(chain, kind, host);
            const isFooled = knows(other) && !faults(chain, other);
            return [
              ...(fault ? [`${name}: ${program}: ${fault}`] : []),
              ...(isFooled ? [`${name}: ${program} verifies it for ${other}`] : []),
            ];
          });
        }
        for (const one of product.startsWith('short-') ? [issuing] : [leaf, issuing]) {
          const [, path = ''] = /\/crl\/([0-9a-z]+\/\d+)\.crl/.exec(derOf(one).toString('latin1')) ?? [];
          const crl = new Uint8Array(await (await fetch(`${app.url}/crl/${path}.crl`)).arrayBuffer());
          const type = one === leaf ? 'CRL' : 'ARL';
          const profile = isPublic ? 'BR' : 'PKIX';
          judge(`${name} ${type}.pem`, pem('X509 CRL', crl), zlint, pkilint('lint_crl', '-t', type, '-p', profile));
        }
        const serial = new X509Certificate(leaf).serialNumber.toLowerCase();
        const { der } = await postOcsp(app, ocspRequest([certIdOf(serial, derOf(issuing))]));
        judge(`${name} ocsp.pem`, pem('OCSP RESPONSE', der), pkilint('lint_ocsp_response'));
        judge(
          `${name} responder.pem`,
          pem('CERTIFICATE', responderIn(der)),
          zlint,
          isPublic ? pkilint('lint_cabf_serverauth_cert', '-t', 'OCSP-RESPONDER') : pkilint('lint_pkix_cert'),
        );
      }
    }
    const hasGmssl = isHere(GMSSL, 'version');
    const ofSm2 = hasGmssl ? await judgeSm2(app, folder.path) : [];
    if (!hasGmssl) print(`${GMSSL} is not here, so nothing of SM2 was judged`);
    const broken = [...ofSm2, ...questions.flatMap((ask) => ask())];
    print(`${judged} were judged`);
    return hasZlint || hasPkilint ? broken : [...broken, 'neither zlint nor pkilint is here: set ZLINT and PKILINT'];
  },
};

/** Chains of both halves of a dual certificate, and the CRLs of issuer and root, as GmSSL sees them. */
async function judgeSm2(app: TestApp, folder: string): Promise<string[]> {
  const order = await newDualOrder(app, await newSm2Csr());
  const shown = await certificate(app, order, order.certificateId);
  const write = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const root = write('sm2 root.pem', shown.root_pem);
  const issuing = write('sm2 issuing.pem', shown.ica_pem);
  const runs = [shown.pem, shown.encryption_pem].map((leaf, index) => [
    ...['certverify', '-in', write(`sm2 chain ${index}.pem`, leaf + shown.ica_pem), '-cacert', root],
  ]);
  for (const { id, role, keyType } of app.issuance.issuers) {
    if (keyType !== 'sm2') continue;
    const crl = new Uint8Array(await (await fetch(`${app.url}/crl/${id}/0.crl`)).arrayBuffer());
    const file = write(`sm2 ${role}.crl`, crl);
    runs.push(['crlparse', '-in', file], ['crlverify', '-in', file, '-cacert', role === 'root' ? root : issuing]);
  }
  return runs.flatMap((args) => {
    const { stdout, stderr } = spawnSync(GMSSL, args, { encoding: 'utf8' });
    const isGood = args[0] === 'crlparse' ? /CRLNumber: \d+/.test(stdout) : /Verification success/.test(stdout);
    return isGood && !/fail/i.test(stdout) ? [] : [`GmSSL ${args[0]}: ${stdout.slice(-200)} ${stderr.slice(-200)}`];
  });
}

const explained =
  (lint: Lint, isPublic: boolean): Lint =>
  (file) =>
    lint(file).filter((error) => isPublic || !EXPLAINED.some((one) => one.test(error)));

function zlintErrors(file: string): string[] {
  const { stdout, stderr } = spawnSync(ZLINT, [file], { encoding: 'utf8' });
  try {
    const results: Record<string, { readonly result: string }> = JSON.parse(stdout);
    return Object.entries(results).flatMap(([name, { result }]) => (/error|fatal/.test(result) ? [name] : []));
  } catch {
    return [`zlint: ${stderr}`];
  }
}

function pkilintErrors(program: string, options: readonly string[]): string[] {
  const { status, stdout, stderr } = spawnSync(join(PKILINT, program), ['lint', '-s', 'ERROR', ...options], {
    encoding: 'utf8',
  });
  if (status === 0 && stdout.trim() === '') return [];
  const findings = stdout.match(/\S+ \((ERROR|FATAL)\).*/g);
  return findings ?? [`${program}: ${stdout.trim()} ${stderr.trim().slice(-300)}`];
}

/** The certificate that an OCSP response brings along. */
function responderIn(response: Uint8Array): Uint8Array {
  const outer = new DerReader(response).sequence();
  outer.any();
  const bytes = outer.context(0)!.sequence();
  bytes.oid();
  const basic = new DerReader(bytes.octetString()).sequence();
  for (let skipped = 0; skipped < 3; skipped += 1) basic.any();
  return basic.context(0)!.sequence().any();
}
