// Custody of issuers' keys for the command line: makes keys, requests, successors and lists, and records each act.
import { X509Certificate } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { authorityRequest, newAuthorityRequest, requestPem } from '../adapters/ca/custody/authority-request.ts';
import { crlRequestText } from '../adapters/ca/custody/crl-request.ts';
import { encryptedKey, requirePassphrase } from '../adapters/ca/custody/encrypted-key.ts';
import { openRootSigner, signRootCrl } from '../adapters/ca/custody/offline-root.ts';
import { nameText } from '../adapters/ca/distinguished-name.ts';
import { describe, hasCertificateOf, readAlternateChain, readImportedIssuer } from '../adapters/ca/imported-issuer.ts';
import { chainOf } from '../adapters/ca/issuer-selection.ts';
import { crlUrl, issuerCertificateUrl, newIssuing, nextName, ownRoot } from '../adapters/ca/issuers.ts';
import { CrlRejected, readCrl } from '../adapters/ca/status/crl-reader.ts';
import type { CustodyCommands } from '../cli/ceremony.ts';
import type { Config } from '../config/config.ts';
import {
  type Issuer,
  type IssuerKeyType,
  isKeyHere,
  isOwnRoot,
  type PublicIssuer,
} from '../domain/certificate/authority.ts';
import { pem } from '../domain/certificate/pem.ts';
import { backdated } from '../domain/certificate/validity.ts';
import type { Clock } from '../domain/clock.ts';
import type { PendingIssuer } from '../domain/issuance/custody.ts';
import { createFile } from '../kernel/durable-file.ts';
import { DAY_MS } from '../kernel/durations.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { entriesOf, keepCustody } from '../usecases/issuance/keep-custody.ts';
import type { App } from './app.ts';
import { type HsmConfig, withNewTokenKey } from './hsm.ts';

type Publish = (rootId: string) => Promise<void>;

/** `publish` signs and publishes the list of a root whose key is here. */
export function custodyCommands(
  { store, newId }: Pick<App, 'store' | 'newId'>,
  config: Pick<Config, 'authority'> & HsmConfig,
  now: Clock,
  publish: Publish,
): CustodyCommands {
  const custody = keepCustody({ store, now, newId });
  const { authority: settings } = config;
  const { pkiUrl } = settings;

  async function issuerNamed(id: string): Promise<{ issuer: Issuer; all: Issuer[] }> {
    const all = await store.issuers.list();
    const issuer = all.find((one) => one.id === id);
    if (!issuer) throw new Problem(EXIT.refused, `there is no issuer ${id}`, 'List them: reseal ca list');
    return { issuer, all };
  }

  /** What the root has to sign next. */
  async function listFor(root: PublicIssuer) {
    const head = await store.crls.head({ issuerId: root.id, shard: 0 });
    const entries = await entriesOf(store, root.id);
    return { head, entries, number: Math.max((head?.number ?? 0) + 1, now()) };
  }

  async function crlRequestOf(root: PublicIssuer) {
    const { entries, number } = await listFor(root);
    const certificate = describe(root.certificate).fingerprint.replaceAll(':', '').toLowerCase();
    return { number, text: crlRequestText({ issuerId: root.id, certificate, number, entries }) };
  }

  return {
    ceremonies: custody.ceremonies,

    async request({ purposes, keyType, keyUri }, write) {
      requireVerifiable(keyType);
      const issuers = await store.issuers.list();
      const root = issuers.find((one) => isOwnRoot(one) && one.keyType === keyType);
      const [purpose] = purposes;
      if (!purpose) throw new Problem(EXIT.usage, 'no purpose is named', 'Use --for.');
      const subject = nextName({ purpose, keyType }, settings, issuers);
      const wanted = {
        ...{ keyType, purposes, subject },
        root: root && { certificate: issuerCertificateUrl(pkiUrl, root.id), crl: crlUrl(pkiUrl, root.id, 0) },
      };
      if (keyUri !== undefined) {
        // The store needs to know nothing of it until its certificate is imported.
        const request = await withNewTokenKey(config, keyUri, keyType, (key) => authorityRequest(key, wanted));
        const csr = requestPem(request);
        write(csr);
        const id = newId();
        const facts = { key_type: keyType, purposes: purposes.join(' '), key_place: 'token' };
        const act = { action: 'authority:requested', subject: id, facts, outputs: { request: csr } } as const;
        return { id, subject: nameText(subject), ceremony: await custody.record(act) };
      }
      const made = await newAuthorityRequest(wanted);
      const csr = requestPem(made.request);
      const pending: PendingIssuer = { id: newId(), keyType, purposes, ...made, createdAt: now() };
      write(csr);
      const ceremony = await custody.request(pending, csr);
      return { id: pending.id, subject: nameText(subject), ceremony };
    },

    async install(chain, policy) {
      const waiting = await store.pendingIssuers.list();
      const pending = waiting.find(({ privateKey }) => hasCertificateOf(chain, privateKey));
      if (!pending) {
        throw new Problem(
          EXIT.refused,
          `no certificate of the chain is for one of the ${waiting.length} keys that wait for theirs`,
          'Give the answer to a request of reseal ca csr. An authority with its key: reseal ca import.',
        );
      }
      const { purposes, privateKey: key } = pending;
      const [first, ...above] = readImportedIssuer({ chain, key, purposes, policy }, now(), newId);
      const { issuer, ceremony } = await custody.install([{ ...first, id: pending.id }, ...above], chain);
      return { issuer, ceremony, stillSigning: await custody.drain() };
    },

    async rotate(purpose, keyType) {
      const issuers = await store.issuers.list();
      const having = issuers.filter(
        (one) => one.purposes.includes(purpose) && (keyType === undefined || one.keyType === keyType),
      );
      const [previous, another] = having;
      if (!previous) {
        throw new Problem(
          EXIT.refused,
          `nothing signs for ${purpose}${keyType === undefined ? '' : ` on ${keyType}`} yet`,
          'There is nothing to rotate: an issuer is made when it is first needed.',
        );
      }
      if (another) {
        const types = having.map((one) => one.keyType).join(', ');
        throw new Problem(EXIT.usage, `${purpose} has issuers on ${types}`, 'Name one of them: --key-type');
      }
      const root = ownRoot(issuers, previous.keyType);
      if (!root || root.id !== previous.parentId) throw needsCeremony(previous, purpose);
      const slot = { purpose, keyType: previous.keyType };
      const issuer = await newIssuing(slot, { root, issuers, settings, now: now(), id: newId() });
      const ceremony = await custody.rotate(issuer, slot, previous.id);
      return { issuer, previousId: previous.id, ceremony, stillSigning: await custody.drain() };
    },

    async revoke(id, reason, write) {
      const { issuer, all } = await issuerNamed(id);
      const parent = all.find((one) => one.id === issuer.parentId);
      if (!parent || issuer.role === 'root') {
        throw new Problem(EXIT.refused, `${id} is a root, which no list can revoke`, 'Have verifiers distrust it.');
      }
      if (!isOwnRoot(parent)) {
        throw new Problem(
          EXIT.refused,
          `the lists of ${describe(parent.certificate).subject} are not published here`,
          'Have that authority revoke it; to stop its use, import or install a successor: reseal ca import, reseal ca csr.',
        );
      }
      if (!isKeyHere(parent) && !write) {
        throw new Problem(
          EXIT.refused,
          `the key of the root ${parent.id} is offline, and its list has to be signed there`,
          `Name a file for what has to be signed: reseal ca revoke ${id} --reason ${reason} --out FILE. Its use stops at once.`,
        );
      }
      const { serial, notAfter } = describe(issuer.certificate);
      const { issued = 0, revoked = 0 } = (await store.issuers.counts()).get(id) ?? {};
      const ceremony = await custody.revoke({ issuer, parentId: parent.id, serial, notAfter, reason });
      const stillSigning = await custody.drain();
      const valid = issued - revoked;
      if (isKeyHere(parent)) {
        await publish(parent.id);
        const head = await store.crls.head({ issuerId: parent.id, shard: 0 });
        return { ceremony, stillSigning, valid, crlNumber: head?.number ?? null };
      }
      const { text, number } = await crlRequestOf(parent);
      write?.(text);
      await custody.record({
        ...{ action: 'root:crl_requested', subject: parent.id, facts: { crl_number: number } },
        outputs: { request: text },
      });
      return { ceremony, stillSigning, valid, crlNumber: null };
    },

    async exportRoot(id, files, { passphrase, isRemoved, crlDays }) {
      const { issuer: root } = await issuerNamed(id);
      requireVerifiable(root.keyType);
      if (root.role !== 'root' || !root.privateKey) {
        throw new Problem(EXIT.refused, `the store has no root key ${id}`, 'List them: reseal ca list');
      }
      requirePassphrase(passphrase);
      createFile(files.key, encryptedKey(root.privateKey, passphrase));
      try {
        createFile(files.chain, pem('CERTIFICATE', root.certificate));
        // Read back from the disk, opened, and used: what the list is signed with is what the file holds.
        const [key, chain] = [readFileSync(files.key, 'utf8'), readFileSync(files.chain, 'utf8')];
        const signer = openRootSigner(chain, key, passphrase);
        const outputs = { key, chain };
        const backups = await backupsSince(root.createdAt);
        if (!isRemoved) {
          const ceremony = await custody.record({
            ...{ action: 'root:exported', subject: id, facts: { removed: 'no' }, outputs },
            inputs: { certificate: root.certificate },
          });
          return { ceremony, nextUpdate: null, left: [], backups };
        }
        const { head, entries, number } = await listFor(root);
        const { validFromDate, validToDate } = new X509Certificate(root.certificate);
        const thisUpdate = backdated(now(), { notBefore: validFromDate.getTime() });
        const nextUpdate = Math.min(thisUpdate + crlDays * DAY_MS, validToDate.getTime());
        const der = await signRootCrl(signer, { number, thisUpdate, nextUpdate, entries });
        const read = readCrl(der, [root]);
        const ceremony = await custody.takeOffline({
          ...{ root, outputs, replaces: head?.number ?? null },
          list: {
            ...{ number, thisUpdate, nextUpdate, der: read.der, entries: entries.length, addresses: '' },
            expiredBefore: head?.expiredBefore ?? 0,
          },
        });
        const left = await store.purge();
        const facts = { left: left.join('; '), backups: backups.length };
        await custody.record({ action: 'root:key_removed', subject: id, facts });
        return { ceremony, nextUpdate, left, backups };
      } catch (error) {
        // Nothing was removed, or the record says so: a file is left only with the key that it is for.
        const [current] = (await store.issuers.listPublic()).filter((one) => one.id === id);
        if (current && isKeyHere(current)) for (const file of Object.values(files)) rmSync(file, { force: true });
        throw error;
      }
    },

    async crlRequest(id, write) {
      const { issuer: root } = await issuerNamed(id);
      if (root.role !== 'root' || isKeyHere(root)) {
        const why = root.role === 'root' ? 'has its key here, and publishes its list by itself' : 'is not a root';
        throw new Problem(EXIT.refused, `${id} ${why}`, 'See: reseal ca list');
      }
      const { number, text } = await crlRequestOf(root);
      write(text);
      const ceremony = await custody.record({
        ...{ action: 'root:crl_requested', subject: id, facts: { crl_number: number } },
        outputs: { request: text },
      });
      return { ceremony, number };
    },

    async installCrl(bytes) {
      const issuers = await store.issuers.listPublic();
      const crl = readOwnCrl(bytes, issuers);
      const issuer = issuers.find(({ id }) => id === crl.issuerId);
      if (!issuer || isKeyHere(issuer)) {
        throw new Problem(EXIT.refused, 'the key of its issuer is here, and signs its lists', 'See: reseal crl show');
      }
      return { ceremony: await custody.installCrl(crl), nextUpdate: crl.nextUpdate };
    },

    async crossSign(id, text) {
      const { issuer, all } = await issuerNamed(id);
      const certificates = readAlternateChain(issuer.certificate, text, now());
      const own = chainOf(issuer, all).map(({ certificate }) => Buffer.from(certificate).toString('base64'));
      if (own.includes(Buffer.from(certificates.at(-1) ?? []).toString('base64'))) {
        throw new Problem(EXIT.refused, 'the root of the chain is that of the issuer', 'Give a chain to another root.');
      }
      const [first = new Uint8Array()] = certificates;
      const fingerprint = describe(first).fingerprint.replaceAll(':', '').toLowerCase();
      const ceremony = await custody.crossSign({ issuerId: id, fingerprint, certificates, createdAt: now() }, text);
      return { ceremony, url: `${pkiUrl}/ca/${id}.${fingerprint}.pem` };
    },
  };

  async function backupsSince(at: number) {
    const known = await store.takenBackups.since(at);
    const last = Number((await store.settings.get('last_backup_at')) ?? 0);
    const isKnown = last < at || known.some(({ takenAt }) => takenAt === last);
    return isKnown ? known : [...known, { digest: '', takenAt: last, file: '(its name was not recorded)' }];
  }
}

/** node:crypto verifies no certificate that is signed with SM2. */
function requireVerifiable(keyType: IssuerKeyType): void {
  if (keyType !== 'sm2') return;
  throw new Problem(
    EXIT.refused,
    'keys on SM2 stay in the store: a chain on SM2 cannot be verified when it comes back',
    'Rotate issuers on SM2 with reseal ca rotate; take the other roots offline.',
  );
}

const needsCeremony = ({ parentId }: Issuer, purpose: string): Problem =>
  new Problem(
    EXIT.refused,
    `the key of the root ${parentId ?? ''} is not here`,
    `Make a key and a request: reseal ca csr --for ${purpose} OUT. Have it signed: reseal ca root sign. Then: reseal ca install CHAIN`,
  );

function readOwnCrl(bytes: Uint8Array, issuers: readonly PublicIssuer[]) {
  try {
    return readCrl(bytes, issuers);
  } catch (error) {
    if (!(error instanceof CrlRejected)) throw error;
    throw new Problem(
      EXIT.refused,
      `the list is not used: ${error.message}`,
      'Give a list of reseal ca root sign-crl.',
      {
        cause: error,
      },
    );
  }
}
