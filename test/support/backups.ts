// For tests of backup and restore: an empty data folder with a seal key, the CRLs that the world has seen, and what CRL
// and OCSP say of a serial number.
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder, type TestApp } from './app.ts';
import { reseal } from './in-process.ts';
import { certificate, type PlacedOrder } from './orders.ts';
import { crlOf, derOf, ocspStatus, partsOf, pems } from './status.ts';

/** A data folder to restore into, with the seal key of another one. */
export function emptyFolderFor({ folder }: Pick<TestApp, 'folder'>): string {
  const target = newFolder();
  copyFileSync(join(folder, 'seal.key'), join(target, 'seal.key'));
  return target;
}

/** Saves the CRLs that the service serves, as a mirror would. Returns the folder and the numbers by file name. */
export async function mirrorCrls(app: TestApp): Promise<{ folder: string; numbers: Map<string, number> }> {
  const folder = newFolder();
  const heads = await app.app.store.crls.heads();
  for (const { issuerId, shard } of heads) {
    const response = await fetch(`${app.url}/crl/${issuerId}/${shard}.crl`);
    writeFileSync(join(folder, `${issuerId}-${shard}.crl`), Buffer.from(await response.arrayBuffer()));
  }
  const current = await app.app.store.crls.heads();
  return { folder, numbers: new Map(current.map((one) => [`${one.issuerId}-${one.shard}`, one.number])) };
}

/** A certificate as the world knows it, with or without a row in a store. */
export interface KnownCertificate {
  readonly der: Uint8Array;
  readonly serial: string;
  readonly issuer: Uint8Array;
}

export async function knownCertificate(app: TestApp, order: PlacedOrder): Promise<KnownCertificate> {
  const { pem, ica_pem } = await certificate(app, order, order.certificateId);
  const der = derOf(pem);
  return { der, serial: partsOf(der).serial, issuer: derOf(pems(ica_pem)[0] ?? '') };
}

/** What OCSP says, and what the CRL that the certificate points to says. */
export async function worldView(app: TestApp, { der, serial, issuer }: KnownCertificate) {
  const { status, reason = null, at = null } = await ocspStatus(app, serial, issuer);
  const crl = await crlOf(app, der, issuer);
  const listed = crl.revoked.get(serial) ?? null;
  return { ocsp: status, reason, at, listed: listed?.reason ?? null, number: crl.number };
}

export const revoke = async (app: TestApp, { key, certificateId }: PlacedOrder, reason: string): Promise<void> => {
  const { status, text } = await app.call('POST', `/openapi/v3/certs/${certificateId}/revoke`, {
    key,
    json: { reason },
  });
  if (status !== 200) throw new Error(text);
};

/** Runs a command that must succeed, with --json, and returns what it printed. */
export async function resealJson(args: readonly string[], settings: Record<string, string>) {
  const { code, out, err } = await reseal([...args, '--json'], settings);
  if (code !== 0) throw new Error(`${args.join(' ')}: ${out}${err}`);
  return JSON.parse(out);
}
