// reseal cert revoke | reschedule | cancel-revocation | status | revoke-key | interrupted, reseal crl show

import { readFileSync } from 'node:fs';
import { type Revocation, revocationOf } from '../domain/certificate/certificate.ts';
import type { CertificateRef } from '../domain/revocation/ports.ts';
import { OPERATOR_REASONS, parseDueAt } from '../domain/revocation/revocation.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { byOperator } from '../usecases/access/audit.ts';
import type { ShownCertificate } from '../usecases/issuance/show-orders.ts';
import type { Command } from './command.ts';
import { oneOf, table, time } from './values.ts';

const timeOrNull = (at: number | null): string | null => (at === null ? null : time(at));

/** Revocation status: what is recorded, and which CRLs show it. */
const statusOf = ({ certificate, seen }: ShownCertificate) => ({
  id: certificate.id,
  state: certificate.state,
  serial_number: 'preparation' in certificate ? certificate.preparation.serial : null,
  revocation: revocationStatus(revocationOf(certificate), seen),
});

const revocationStatus = (revocation: Revocation | null, seen: ShownCertificate['seen']) =>
  revocation && {
    reason: revocation.reason,
    cause: revocation.cause,
    due_at: time(revocation.dueAt),
    revoked_at: timeOrNull(revocation.revokedAt),
    ocsp_since: timeOrNull(revocation.revokedAt),
    lists: seen.map((one) => ({
      serial_number: one.serial,
      issuer_id: one.issuerId,
      shard: one.shard,
      crl_number: one.crlNumber,
      crl_published_at: timeOrNull(one.crlPublishedAt),
    })),
  };

function statusText(shown: ShownCertificate): string {
  const { id, revocation } = statusOf(shown);
  if (!revocation) return `Certificate ${id} is not revoked, and no revocation is scheduled.`;
  const { reason, cause, due_at, revoked_at, lists } = revocation;
  if (revoked_at === null) return `Certificate ${id} will be revoked at ${due_at}: ${reason} (${cause}).`;
  const lines = lists.map(({ serial_number, issuer_id, shard, crl_number, crl_published_at }) =>
    crl_number === null
      ? `${serial_number}: on no CRL yet`
      : `${serial_number}: on CRL ${issuer_id}/${shard}.crl since number ${crl_number} of ${crl_published_at}`,
  );
  return [
    `Certificate ${id} is revoked: ${reason} (${cause}).`,
    `recorded, and in OCSP, since ${revoked_at}`,
    ...lines,
  ].join('\n');
}

const output = (shown: ShownCertificate) => ({ json: { certificate: statusOf(shown) }, text: statusText(shown) });

export const certRevoke: Command = {
  store: 'existing',
  about: 'revoke a certificate now; key_compromise also adds its key to the blocklist of the account',
  examples: ['cert revoke ACCOUNT CERTIFICATE', 'cert revoke ACCOUNT CERTIFICATE --reason privilege_withdrawn'],
  positionals: ['ACCOUNT', 'CERTIFICATE'],
  options: {
    reason: {
      type: 'string',
      about: `${OPERATOR_REASONS.join(', ')} (default: superseded if it was replaced, else cessation_of_operation)`,
    },
  },
  async run({ positionals: [accountId = '', id = ''], options }, { withRevocation }) {
    const reason =
      options.reason === undefined ? undefined : oneOf('reason', options.reason, OPERATOR_REASONS, 'superseded');
    return output(
      await withRevocation(async ({ revoke, show }) => {
        await revoke(byOperator(accountId), id, { reason });
        return await show.certificate(accountId, id);
      }),
    );
  },
};

export const certReschedule: Command = {
  store: 'existing',
  about: 'move a scheduled revocation to an earlier time, or to a later one where the product allows it',
  examples: ['cert reschedule ACCOUNT CERTIFICATE 2027-01-31T12:00:00Z'],
  positionals: ['ACCOUNT', 'CERTIFICATE', 'DUE_AT'],
  options: {},
  async run({ positionals: [accountId = '', id = '', dueAt = ''] }, { withRevocation }) {
    const dueAtMs = parseDueAt(dueAt);
    return output(
      await withRevocation(async ({ changeRevocation, show }) => {
        await changeRevocation.reschedule(byOperator(accountId), id, dueAtMs);
        return await show.certificate(accountId, id);
      }),
    );
  },
};

export const certCancelRevocation: Command = {
  store: 'existing',
  about: 'cancel a scheduled revocation, where the product allows it',
  examples: ['cert cancel-revocation ACCOUNT CERTIFICATE'],
  positionals: ['ACCOUNT', 'CERTIFICATE'],
  options: {},
  async run({ positionals: [accountId = '', id = ''] }, { withRevocation }) {
    return output(
      await withRevocation(async ({ changeRevocation, show }) => {
        await changeRevocation.cancel(byOperator(accountId), id);
        return await show.certificate(accountId, id);
      }),
    );
  },
};

export const certStatus: Command = {
  store: 'existing',
  about: 'show when a certificate was revoked, the first CRL that lists it, and since when OCSP answers revoked',
  examples: ['cert status ACCOUNT CERTIFICATE'],
  positionals: ['ACCOUNT', 'CERTIFICATE'],
  options: {},
  async run({ positionals: [accountId = '', id = ''] }, { withRecords }) {
    return output(await withRecords(({ show }) => show.certificate(accountId, id)));
  },
};

const refView = ({ accountId, orderId, certificateId }: CertificateRef) => ({
  account_id: accountId,
  order_id: orderId,
  certificate_id: certificateId,
});
const refTable = (refs: readonly CertificateRef[]): string =>
  table(
    ['ACCOUNT', 'ORDER', 'CERTIFICATE'],
    refs.map((one) => [one.accountId, one.orderId, one.certificateId]),
  );

export const certRevokeKey: Command = {
  store: 'existing',
  about: 'revoke every certificate on a compromised key, in all accounts, and add the key to the blocklist',
  examples: ['cert revoke-key leaked.pem --yes', 'cert revoke-key 3f1c…(SHA-256 of the SPKI) --yes'],
  positionals: ['KEY'],
  options: { yes: { type: 'boolean', about: 'confirm: revoke all of them now' } },
  async run({ positionals: [given = ''], options }, { withRevocation }) {
    if (options.yes !== true) {
      throw new Problem(
        EXIT.usage,
        'this revokes certificates of every account that uses the key',
        `Confirm: reseal cert revoke-key ${given} --yes`,
      );
    }
    const { fingerprint, certificates } = await withRevocation(async ({ fingerprintOf, revokeKey }) => {
      const fingerprint = /^[0-9a-f]{64}$/i.test(given) ? given.toLowerCase() : fingerprintOf(textOf(given));
      return { fingerprint, certificates: await revokeKey(fingerprint) };
    });
    const count = certificates.length;
    return {
      json: { fingerprint, certificates: certificates.map(refView) },
      text: `The key ${fingerprint} is on the blocklist. ${count} ${count === 1 ? 'certificate' : 'certificates'} on it revoked.${count > 0 ? `\n${refTable(certificates)}` : ''}`,
    };
  },
};

export const certInterrupted: Command = {
  store: 'existing',
  about: 'list serial numbers of issuances whose signer never finished; --revoke revokes them',
  examples: ['cert interrupted', 'cert interrupted --revoke'],
  positionals: [],
  options: { revoke: { type: 'boolean', about: 'revoke all of them now' } },
  async run({ options }, { withRevocation, withRecords }) {
    const isRevoking = options.revoke === true;
    const found = isRevoking
      ? await withRevocation(({ interrupted }) => interrupted.revoke())
      : await withRecords(({ interrupted }) => interrupted());
    const none = 'None: every recorded serial number is issued or revoked.';
    return {
      json: { voided: found.map(refView), revoked: isRevoking },
      text: found.length === 0 ? none : `${isRevoking ? 'Revoked:\n' : ''}${refTable(found)}`,
    };
  },
};

export const crlShow: Command = {
  store: 'existing',
  about: 'list the published CRLs with their numbers and dates',
  examples: ['crl show'],
  positionals: [],
  options: {},
  async run(_given, { withRecords }) {
    const heads = await withRecords(({ heads }) => heads());
    const rows = heads.map((one) => [
      `${one.issuerId}/${one.shard}.crl`,
      String(one.number),
      String(one.entries),
      time(one.thisUpdate),
      time(one.nextUpdate),
    ]);
    return {
      json: {
        lists: heads.map((one) => ({
          issuer_id: one.issuerId,
          shard: one.shard,
          number: one.number,
          entries: one.entries,
          this_update: time(one.thisUpdate),
          next_update: time(one.nextUpdate),
        })),
      },
      text:
        rows.length === 0
          ? 'None yet: a CRL is created when it is first requested.'
          : table(['CRL', 'NUMBER', 'ENTRIES', 'THIS UPDATE', 'NEXT UPDATE'], rows),
    };
  },
};

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Problem(
      EXIT.usage,
      `${file} cannot be read (${(error as NodeJS.ErrnoException).code})`,
      'Name a PEM file with the key or a certificate on it, or give the SHA-256 of its SPKI in hex.',
      { cause: error },
    );
  }
}
