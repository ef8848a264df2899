// reseal backup | backup verify | restore | crl import

import { type Diagnostic, EXIT } from '../kernel/problem.ts';
import type { Command, Output, RestoreReport } from './command.ts';
import { lineOf } from './service.ts';
import { CRL, listOf, table, time } from './values.ts';

export const backup: Command = {
  store: 'existing',
  about: 'copy the store of a running service to FILE, with a manifest; the seal key is not in it',
  examples: [
    'backup /backups/reseal-2027-01-31.db',
    'backup /backups/reseal.manifest.json --hold   # PostgreSQL: see docs/operations.md',
  ],
  positionals: ['FILE'],
  options: {
    hold: { type: 'boolean', about: 'PostgreSQL: print a snapshot for pg_dump, and hold it until standard input ends' },
  },
  async run({ positionals: [file = ''], options }, { withBackups, report, hold }) {
    const isHeld = options.hold === true;
    let tenths = 0;
    const onProgress = (part: number) => {
      if (part * 10 < tenths + 1) return;
      tenths = Math.floor(part * 10);
      report(`${tenths * 10} %`);
    };
    const manifest = await withBackups(({ take }) => take(file, isHeld ? hold() : undefined, onProgress));
    // Held: standard output has ended with the snapshot, as a script reads only that line.
    if (isHeld) return undefined;
    const rows = manifest.tables.reduce((sum, one) => sum + one.rows, 0);
    return {
      json: { file, manifest },
      text: `${file}: ${rows} rows in ${manifest.tables.length} tables, as of ${manifest.taken_at}, digest ${manifest.digest}
Keep the seal key elsewhere (key ids in use: ${manifest.seal_key_ids.join(', ') || 'none'}). Prove it: reseal backup verify ${file}`,
    };
  },
};

export const backupVerify: Command = {
  store: 'none',
  about: 'prove that a backup is complete, intact, and opens with the seal keys at hand',
  examples: [
    'backup verify /backups/reseal-2027-01-31.db',
    'backup verify /backups/reseal.manifest.json   # compares PostgreSQL',
  ],
  positionals: ['[FILE]'],
  options: {},
  run: async ({ positionals: [file] }, { withBackups }) => outputOf(await withBackups(({ verify }) => verify(file))),
};

const outputOf = (findings: readonly Diagnostic[]): Output => {
  const problems = findings.filter(({ state }) => state === 'problem').length;
  return {
    json: { findings },
    text: `${findings.map(lineOf).join('\n')}\n\n${problems} problems`,
    exitCode: problems === 0 ? EXIT.ok : EXIT.refused,
  };
};

export const restore: Command = {
  store: 'creates',
  about: 'fill an empty data folder from a backup, and revoke again what the CRLs revoke',
  examples: [
    'restore /backups/reseal-2027-01-31.db --crl /mirror/crls',
    'restore reseal.db --crl http://192.0.2.1/0.crl --crl 1.crl',
    'restore /backups/reseal.manifest.json --crl /mirror/crls   # after pg_restore',
  ],
  positionals: ['FILE'],
  options: {
    crl: CRL,
    'without-crl': { type: 'boolean', about: 'accept that what was revoked since the backup becomes valid again' },
  },
  async run({ positionals: [file = ''], options }, { withBackups }) {
    const acceptsLoss = options['without-crl'] === true;
    const report = await withBackups(({ restore }) => restore(file, listOf(options.crl), acceptsLoss));
    return reportOf(report, `Restored ${file}, as of ${report.takenAt}. Start the service: it publishes new CRLs.\n`);
  },
};

export const crlImport: Command = {
  store: 'existing',
  about: 'revoke what CRLs of this authority revoke and the store does not, after a restore by other means',
  examples: ['crl import /mirror/crls', 'crl import http://192.0.2.1/0.crl 1.crl'],
  positionals: ['CRL…'],
  options: {},
  run: async ({ positionals }, { withBackups }) =>
    reportOf(await withBackups(({ importCrls }) => importCrls(positionals)), ''),
};

function reportOf({ lists, revoked, withoutCertificate, missing }: RestoreReport, heading: string): Output {
  const entry = (one: RestoreReport['revoked'][number] | RestoreReport['withoutCertificate'][number]) => ({
    ...{ serial_number: one.serial, issuer_id: one.issuerId, reason: one.reason, revoked_at: time(one.revokedAt) },
  });
  const json = {
    lists: lists.map(({ source, issuerId, shard, number, thisUpdate, entries }) => ({
      ...{ source, issuer_id: issuerId, shard, number, this_update: time(thisUpdate), entries },
    })),
    revoked: revoked.map((one) => ({ ...entry(one), certificate_id: one.certificateId })),
    without_certificate: withoutCertificate.map((one) => ({ ...entry(one), listed_until: time(one.listedUntil) })),
    missing_lists: missing.map(({ issuerId, shard, number }) => ({ issuer_id: issuerId, shard, number })),
  };
  const again = table(
    ['SERIAL NUMBER', 'REASON', 'REVOKED', 'CERTIFICATE'],
    revoked.map((one) => [one.serial, one.reason, time(one.revokedAt), one.certificateId]),
  );
  const unknown = table(
    ['SERIAL NUMBER', 'REASON', 'REVOKED', 'LISTED UNTIL'],
    withoutCertificate.map((one) => [one.serial, one.reason, time(one.revokedAt), time(one.listedUntil)]),
  );
  const parts = [
    `${heading}${lists.length} CRLs read. Revoked again: ${revoked.length}.${revoked.length > 0 ? `\n${again}` : ''}`,
    ...(withoutCertificate.length > 0
      ? [`Revoked, with no certificate here (issued after the backup): ${withoutCertificate.length}.\n${unknown}`]
      : []),
    ...(missing.length > 0
      ? [
          `No CRL was given for ${missing.length} that the store has published; what they revoked since is not known here:
${missing.map(({ issuerId, shard }) => `  ${issuerId}/${shard}.crl`).join('\n')}`,
        ]
      : []),
  ];
  return { json, text: parts.join('\n\n') };
}
