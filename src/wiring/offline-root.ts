// Signing with an exported root, for the command line. Opens no store and reads no settings.
import { X509Certificate } from 'node:crypto';
import { readAuthorityRequest } from '../adapters/ca/custody/authority-request.ts';
import { readCrlRequest } from '../adapters/ca/custody/crl-request.ts';
import { openRootSigner, signRootCrl, signSubordinate } from '../adapters/ca/custody/offline-root.ts';
import { nameText } from '../adapters/ca/distinguished-name.ts';
import { describe } from '../adapters/ca/imported-issuer.ts';
import type { OfflineRoot } from '../cli/ceremony.ts';
import { pem } from '../domain/certificate/pem.ts';
import { backdated } from '../domain/certificate/validity.ts';
import type { Clock } from '../domain/clock.ts';
import { DAY_MS } from '../kernel/durations.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { byOperator } from '../usecases/access/audit.ts';
import { ceremonyDetails } from '../usecases/issuance/ceremonies.ts';

export const offlineRoot = (now: Clock): OfflineRoot => ({
  async sign({ csr, years, key, chain, passphrase }) {
    const request = readAuthorityRequest(csr);
    const root = openRootSigner(chain, key, passphrase);
    const certificate = await signSubordinate(root, request, { now: now(), years });
    return {
      chain: [certificate, ...root.chain].map((one) => pem('CERTIFICATE', one)).join(''),
      subject: nameText(request.subject),
      allows: request.purposes,
      notAfter: new X509Certificate(certificate).validToDate.getTime(),
    };
  },

  async signCrl({ request, days, key, chain, passphrase }) {
    const { certificate, number, entries } = readCrlRequest(request);
    const root = openRootSigner(chain, key, passphrase);
    if (describe(root.certificate).fingerprint.replaceAll(':', '').toLowerCase() !== certificate) {
      throw new Problem(
        EXIT.refused,
        'the request is for another root',
        'Give the key and chain of the root it names.',
      );
    }
    const { validFromDate, validToDate } = new X509Certificate(root.certificate);
    const thisUpdate = backdated(now(), { notBefore: validFromDate.getTime() });
    const nextUpdate = Math.min(thisUpdate + days * DAY_MS, validToDate.getTime());
    const crl = await signRootCrl(root, { number, thisUpdate, nextUpdate, entries });
    return { crl, number, entries: entries.length, nextUpdate };
  },

  record: (inputs, outputs) => ({
    at: new Date(now()).toISOString(),
    actor: byOperator(null).actor,
    details: ceremonyDetails({ inputs, outputs }),
  }),
});
