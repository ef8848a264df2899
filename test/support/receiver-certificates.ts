// A throw-away CA that issues receivers valid certificates and the usual invalid ones.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { rootExtensions } from '../../src/adapters/ca/profiles.ts';
import {
  distinguishedName,
  extension,
  SIGNATURE_ALGORITHMS,
  signedCertificate,
  toBeSigned,
} from '../../src/adapters/ca/to-be-signed.ts';
import { ia5String, implicit, octetString, oid, sequence } from '../../src/adapters/der/writer.ts';
import { pem } from '../../src/domain/certificate/pem.ts';
import { parseAddress } from '../../src/domain/egress/addresses.ts';

const DAY = 86_400_000;
const SUBJECT_ALT_NAME = oid('2.5.29.17');
const ALGORITHM = SIGNATURE_ALGORITHMS.p256.sha256!;

export interface Identity {
  readonly cert: string;
  readonly key: string;
}

interface Lie {
  readonly from?: number;
  readonly until?: number;
  /** Instead of an EC key. */
  readonly rsaBits?: number;
}

const newKey = (rsaBits?: number) =>
  rsaBits ? generateKeyPairSync('rsa', { modulusLength: rsaBits }) : generateKeyPairSync('ec', { namedCurve: 'P-256' });
const spkiOf = (key: KeyObject): Uint8Array => key.export({ type: 'spki', format: 'der' });

export class TestCa {
  /** PEM. */
  readonly root: string;
  readonly #key = newKey();
  readonly #name: string;
  #serial = 0;

  constructor(name: string) {
    this.#name = name;
    this.root = this.#certify(name, this.#key.publicKey, rootExtensions(spkiOf(this.#key.publicKey)), {});
  }

  /** Names or IP addresses. */
  identity(hosts: readonly string[], lie: Lie = {}): Identity {
    const { privateKey, publicKey } = newKey(lie.rsaBits);
    const altNames = sequence(hosts.map(altName));
    const extensions = [extension({ id: SUBJECT_ALT_NAME, isCritical: false, value: altNames })];
    return {
      cert: this.#certify(hosts[0] ?? '', publicKey, extensions, lie),
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    };
  }

  /** The root itself, as a server with a self-signed certificate presents it. */
  asServer(): Identity {
    return { cert: this.root, key: this.#key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  }

  #certify(
    commonName: string,
    publicKey: KeyObject,
    extensions: readonly Uint8Array[],
    { from = Date.now() - DAY, until = Date.now() + 30 * DAY }: Lie,
  ): string {
    this.#serial += 1;
    const bytes = toBeSigned({
      serial: Uint8Array.of(1, this.#serial),
      algorithm: ALGORITHM,
      issuer: distinguishedName({ commonName: this.#name }),
      notBefore: from,
      notAfter: until,
      subject: distinguishedName({ commonName }),
      spki: spkiOf(publicKey),
      extensions,
    });
    return pem('CERTIFICATE', signedCertificate(bytes, ALGORITHM, sign('sha256', bytes, this.#key.privateKey)));
  }
}

function altName(host: string): Uint8Array {
  const address = parseAddress(host);
  return address ? implicit(7, octetString(address)) : implicit(2, ia5String(host));
}
