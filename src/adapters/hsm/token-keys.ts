// Issuer keys in tokens: a signer process per module and token, shared by the keys in it. Digests are made here and
// signatures verified, so that what a token returns is a signature over what was asked, or nothing.
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { IssuerKeyType } from '../../domain/certificate/authority.ts';
import { formatKeyUri, type KeyUri, keyOf, parseKeyUri } from '../../domain/certificate/key-uri.ts';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import type { IssuerKey, TokenKeys } from '../ca/issuer-key.ts';
import { DEFAULT_HASH } from '../ca/to-be-signed.ts';
import { integer, NULL, octetString, oid, sequence } from '../der/writer.ts';
import { randomBytes } from '../seal/random.ts';
import type { ReadPin } from './pin-file.ts';
import type { Act, KeyFacts, TokenKeyType } from './protocol.ts';
import { type SignerFacts, type SignerLimits, type SignerObserver, type TokenSigner, tokenSigner } from './signer.ts';

export interface OpenTokenKeys extends TokenKeys {
  describe(uri: KeyUri): Promise<KeyFacts>;
  /** Has the key sign a random text. Returns whether a public key verifies it. */
  prove(uri: KeyUri, keyType: TokenKeyType): Promise<(publicKey: KeyObject) => boolean>;
  /** Makes a key that cannot leave the token. */
  generate(uri: KeyUri, keyType: TokenKeyType): Promise<KeyFacts>;
  /** Of every token that a key was opened in, by a name without its PIN's place. */
  states(): readonly (SignerFacts & { readonly token: string })[];
  /** Starts the processes of all tokens that keys were opened in, so that one that is away is known before it is needed. */
  start(): void;
  close(): void;
}

interface TokenKeyTools {
  readonly pinFor: (uri: KeyUri, token: string) => ReadPin;
  readonly observe: (token: string) => SignerObserver;
  readonly isWritable?: boolean;
  readonly limits?: SignerLimits | undefined;
  readonly program?: string | undefined;
}

/** Where distributions put modules, for module-name. */
const FOLDERS = [
  ...['/usr/lib/pkcs11', '/usr/lib64/pkcs11', '/usr/local/lib/pkcs11', '/opt/homebrew/lib/pkcs11', '/usr/lib/softhsm'],
  ...['x86_64', 'aarch64'].map((machine) => `/usr/lib/${machine}-linux-gnu/pkcs11`),
];

export function tokenKeys({ pinFor, observe, isWritable = false, limits, program }: TokenKeyTools): OpenTokenKeys {
  const signers = new Map<string, { readonly token: string; readonly signer: TokenSigner }>();

  function signerOf(uri: KeyUri): TokenSigner {
    const { token, serial } = uri;
    const name = token ?? serial ?? '';
    const place = formatKeyUri({ ...uri, object: '', id: null });
    const known = signers.get(place);
    if (known) return known.signer;
    const signer = tokenSigner({
      ...{ opening: { module: modulePath(uri), token, serial, isWritable }, readPin: pinFor(uri, name) },
      observer: observe(name),
      ...(limits && { limits }),
      ...(program !== undefined && { program }),
    });
    signers.set(place, { token: name, signer });
    return signer;
  }

  async function keyFacts(uri: KeyUri, act: { act: 'describe' } | { act: 'generate'; keyType: TokenKeyType }) {
    const answer = await signerOf(uri).request({ ...act, key: keyOf(uri) }, ({ kind }) => kind === 'key');
    if (answer.kind !== 'key') throw new Error('the signer process answered something else');
    return answer.key;
  }

  return {
    open(text, keyType, spki) {
      const uri = parseKeyUri(text);
      return openTokenKey({ uri, keyType: tokenKeyType(keyType), spki }, signerOf(uri));
    },
    describe: (uri) => keyFacts(uri, { act: 'describe' }),
    async prove(uri, keyType) {
      const challenge = randomBytes(32);
      const signHash = DEFAULT_HASH[keyType];
      const answer = await signerOf(uri).request(signAct({ uri, keyType }, signHash, challenge), isSignature);
      const signature =
        answer.kind === 'signature' ? encoded(keyType, Buffer.from(answer.signature, 'hex')) : challenge;
      return (publicKey) => {
        try {
          return verify(signHash, challenge, publicKey, signature);
        } catch {
          // A key of a type that does not sign with the digest.
          return false;
        }
      };
    },
    generate: (uri, keyType) => keyFacts(uri, { act: 'generate', keyType }),
    states: () => [...signers.values()].map(({ token, signer }) => ({ token, ...signer.facts() })),
    start() {
      for (const { signer } of signers.values()) signer.start();
    },
    close() {
      for (const { signer } of signers.values()) signer.close();
    },
  };
}

function openTokenKey(
  { uri, keyType, spki }: { readonly uri: KeyUri; readonly keyType: TokenKeyType; readonly spki: Uint8Array },
  signer: TokenSigner,
): IssuerKey {
  const publicKey = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  return {
    spki,
    requireReady: signer.requireReady,
    async sign(signHash, bytes) {
      let signature: Uint8Array = new Uint8Array();
      await signer.request(signAct({ uri, keyType }, signHash, bytes), (answer) => {
        if (answer.kind !== 'signature') return false;
        signature = encoded(keyType, Buffer.from(answer.signature, 'hex'));
        return verify(signHash, bytes, publicKey, signature);
      });
      return signature;
    },
  };
}

const isSignature = ({ kind }: { readonly kind: string }): boolean => kind === 'signature';

function signAct({ uri, keyType }: { uri: KeyUri; keyType: TokenKeyType }, signHash: SignHash, bytes: Uint8Array): Act {
  const digest = createHash(signHash).update(bytes).digest();
  const data = keyType === 'rsa' ? digestInfo(signHash, digest) : digest;
  return { act: 'sign', key: keyOf(uri), keyType, data: Buffer.from(data).toString('hex') };
}

/** PKCS#11 has ECDSA signatures as two numbers of equal length. */
function encoded(keyType: TokenKeyType, signature: Buffer): Uint8Array {
  if (keyType === 'rsa') return signature;
  const half = signature.length / 2;
  return sequence([integer(signature.subarray(0, half)), integer(signature.subarray(half))]);
}

const HASH_IDS: Readonly<Partial<Record<SignHash, Uint8Array>>> = {
  sha256: oid('2.16.840.1.101.3.4.2.1'),
  sha384: oid('2.16.840.1.101.3.4.2.2'),
  sha512: oid('2.16.840.1.101.3.4.2.3'),
};

/** RFC 8017, 9.2: what CKM_RSA_PKCS pads and signs. */
function digestInfo(signHash: SignHash, digest: Uint8Array): Uint8Array {
  const id = HASH_IDS[signHash];
  if (!id) throw new Error(`a token does not sign with ${signHash}`);
  return sequence([sequence([id, NULL]), octetString(digest)]);
}

function tokenKeyType(keyType: IssuerKeyType): TokenKeyType {
  if (keyType === 'sm2') throw new Error('SM2 keys are not used in tokens');
  return keyType;
}

/** A module that is not found is named as it is: loading it fails, and says so. */
function modulePath({ module: { kind, value } }: KeyUri): string {
  if (kind === 'path') return value;
  const names = [`lib${value}.so`, `${value}.so`, `lib${value}.dylib`];
  const paths = FOLDERS.flatMap((folder) => names.map((name) => join(folder, name)));
  return paths.find((path) => existsSync(path)) ?? value;
}
