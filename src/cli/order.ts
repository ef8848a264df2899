// reseal order place | list | show | validate | cancel
import { readFileSync } from 'node:fs';
import { requireActive } from '../domain/access/account.ts';
import type { Order } from '../domain/certificate/order.ts';
import { pem } from '../domain/certificate/pem.ts';
import { SIGN_HASHES } from '../domain/certificate/sign-hash.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { byOperator } from '../usecases/access/audit.ts';
import type { ValidationState } from '../usecases/validation/show-validation.ts';
import type { Command } from './command.ts';
import { oneOf, pageSize, table, time } from './values.ts';

const orderView = (order: Order) => ({
  id: order.id,
  account_id: order.accountId,
  product: order.productId,
  status: order.status,
  common_name: order.commonName,
  dns_names: order.names,
  certificate_id: order.currentCertificateId,
  pending_certificate_id: order.pendingCertificateId,
  term_ends_at: time(order.termEndsAt),
  country: order.subject?.country ?? null,
  organization: order.subject?.organization ?? null,
  organizational_unit: order.subject?.organizationalUnit ?? null,
});

export const orderPlace: Command = {
  store: 'existing',
  about: 'place an order; --validated records its names as validated',
  examples: [
    'order place ACCOUNT ssl-dv www.example.com --csr www.csr --validated',
    'order place ACCOUNT ssl-dv www.example.com --names example.com,api.example.com --csr www.csr',
    'order place ACCOUNT tls-private 10.1.2.3 --names db.internal --csr db.csr --validated',
    "order place ACCOUNT code-signing 'Acme Ltd' --csr code.csr --sign-hash sha384 --organization 'Acme Ltd' --country DE",
  ],
  positionals: ['ACCOUNT', 'PRODUCT', 'COMMON_NAME'],
  options: {
    csr: { type: 'string', about: 'file with the certificate signing request' },
    names: { type: 'string', about: 'additional DNS names or IP addresses, separated by commas' },
    'sign-hash': { type: 'string', about: `${SIGN_HASHES.join(', ')} (default: the first that the product offers)` },
    'alternative-id': { type: 'string', about: 'your own id for the order' },
    organization: { type: 'string', about: 'of the holder, in the subject; not for server certificates' },
    'organizational-unit': { type: 'string', about: 'likewise' },
    country: { type: 'string', about: 'likewise; two letters of ISO 3166' },
    validated: { type: 'boolean', about: 'record the names as validated by the operator; the audit log says so' },
  },
  async run({ positionals: [accountId = '', productId = '', commonName = ''], options }, { withIssuance, withAccess }) {
    // Reports an unknown or suspended account before any issuer is created.
    requireActive((await withAccess((access) => access.showAccount(accountId))).account);
    const request = {
      commonName,
      dnsNames: options.names?.toString().split(','),
      csr: csrIn(options.csr),
      keySource: 'caller',
      signHash:
        options['sign-hash'] === undefined
          ? undefined
          : oneOf('sign-hash', options['sign-hash'], SIGN_HASHES, 'sha256'),
      keepsEncryptionKey: false,
    } as const;
    const alternativeId = options['alternative-id']?.toString() ?? null;
    const vouchesForNames = options.validated === true;
    const subject = {
      country: options.country?.toString() ?? null,
      organization: options.organization?.toString() ?? null,
      organizationalUnit: options['organizational-unit']?.toString() ?? null,
    };
    const { order, validation } = await withIssuance(async ({ placeOrder, show }) => {
      const { orderId } = await placeOrder({
        accountId,
        productId,
        alternativeId,
        request,
        subject,
        actor: byOperator(accountId).actor,
        vouchesForNames,
      });
      return await show.order(accountId, orderId);
    });
    const text = `Order ${order.id} is ${order.status}.${instructions(validation)}`;
    return { json: { order: orderView(order), dcv_val: dcvView(validation) }, text };
  },
};

export const orderList: Command = {
  store: 'existing',
  about: 'list the orders of an account, oldest first',
  examples: ['order list ACCOUNT', 'order list ACCOUNT --limit 50 --after 01…'],
  positionals: ['ACCOUNT'],
  options: {
    limit: { type: 'string', about: 'maximum number of orders (default 100)' },
    after: { type: 'string', about: 'continue after this order id' },
  },
  async run({ positionals: [accountId = ''], options }, { withRecords }) {
    const page = { limit: pageSize(options.limit), after: options.after?.toString() };
    const { rows: orders } = await withRecords(({ show }) => show.orders(accountId, {}, page));
    const rows = orders.map((one) => [one.id, one.productId, one.status, time(one.termEndsAt), one.commonName ?? '-']);
    return {
      json: { orders: orders.map(orderView) },
      text: table(['ID', 'PRODUCT', 'STATUS', 'TERM ENDS', 'COMMON NAME'], rows),
    };
  },
};

export const orderShow: Command = {
  store: 'existing',
  about: 'show an order and its current certificate',
  examples: ['order show ACCOUNT ORDER'],
  positionals: ['ACCOUNT', 'ORDER'],
  options: {},
  async run({ positionals: [accountId = '', id = ''] }, { withRecords }) {
    const { order, certificate, validation, scheduled } = await withRecords(({ show }) => show.order(accountId, id));
    const revocations = scheduled.map((one) => ({ certificate_id: one.certificateId, due_at: time(one.dueAt) }));
    const warnings = revocations.map((one) => `${one.certificate_id} will be revoked at ${one.due_at}\n`).join('');
    const text = certificate?.state === 'issued' ? pem('CERTIFICATE', certificate.der) : null;
    const head = `${order.id}  ${order.productId}  ${order.status}\n${order.names.join('\n')}`;
    return {
      json: { order: orderView(order), revocations, pem: text, dcv_val: dcvView(validation) },
      text: `${head}\n${warnings}${instructions(validation)}\n${text ?? 'No certificate yet.'}`,
    };
  },
};

export const orderValidate: Command = {
  store: 'existing',
  about: 'run domain validation of a pending order now, and issue if it passes',
  examples: ['order validate ACCOUNT ORDER'],
  positionals: ['ACCOUNT', 'ORDER'],
  options: {},
  async run({ positionals: [accountId = '', id = ''] }, { withIssuance }) {
    const { order, validation } = await withIssuance(async ({ proveDomains, show }) => {
      await proveDomains.prove(accountId, id);
      return await show.order(accountId, id);
    });
    const text = `Order ${order.id} is ${order.status}.${instructions(validation)}`;
    return { json: { order: orderView(order), dcv_val: dcvView(validation) }, text };
  },
};

export const orderCancel: Command = {
  store: 'existing',
  about: 'cancel a pending order, or the pending reissue of an issued one',
  examples: ['order cancel ACCOUNT ORDER'],
  positionals: ['ACCOUNT', 'ORDER'],
  options: {},
  async run({ positionals: [accountId = '', id = ''] }, { withIssuance }) {
    const order = await withIssuance(({ cancelOrder }) => cancelOrder(byOperator(accountId), id));
    return { json: { order: orderView(order) }, text: `Order ${order.id} is ${order.status}.` };
  },
};

/** The DNS records or files to publish, and the result of the last check. */
const dcvView = ({ names }: ValidationState) =>
  names.map(({ name, challenge, isVerified, finding }) => ({
    domain: name,
    dcv_method: challenge?.method ?? null,
    auth_path: challenge?.path ?? null,
    auth_val: challenge?.value ?? null,
    verified: isVerified,
    problem: finding?.problem ?? null,
  }));

const RECORD_TYPES: Readonly<Record<string, string>> = { file: 'file', dns: 'TXT', 'dns-persist': 'TXT' };

/** What the applicant must publish; empty if no validation is pending. */
function instructions({ names, waiting }: ValidationState): string {
  if (!waiting) return '';
  const lines = names.map(({ name, challenge, isVerified, finding }) => {
    if (isVerified && !finding) return `${name}  validated`;
    const publish =
      isVerified || !challenge ? '' : `\n  ${RECORD_TYPES[challenge.method]} ${challenge.path}\n  ${challenge.value}`;
    return `${name}  ${isVerified ? 'validated' : 'publish:'}${publish}${finding ? `\n  (${finding.reason.en})` : ''}`;
  });
  return `\n\n${lines.join('\n')}`;
}

function csrIn(file: unknown): string {
  if (typeof file !== 'string') {
    throw new Problem(EXIT.usage, 'an order needs a certificate signing request', 'Name its file: --csr www.csr');
  }
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Problem(EXIT.usage, `${file} cannot be read (${code})`, 'Name a file with a CSR in PEM.', {
      cause: error,
    });
  }
}
