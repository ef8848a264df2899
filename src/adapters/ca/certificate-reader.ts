// Reads the parts of a certificate that others must repeat byte for byte: that is how chains are built.
import { DerReader } from '../der/reader.ts';

const SUBJECT_KEY_IDENTIFIER = '2.5.29.14';

/** The name of a certificate's subject, and the identifier of its key if it has one. */
export function namesOf(certificate: Uint8Array): {
  readonly subject: Uint8Array;
  readonly keyId: Uint8Array | undefined;
  /** Every extension, by its identifier. */
  readonly extensions: ReadonlyMap<string, ReadExtension>;
} {
  const reader = new DerReader(certificate).sequence().sequence();
  reader.context(0);
  reader.integer();
  // The signature algorithm, the issuer, the validity.
  for (let skipped = 0; skipped < 3; skipped += 1) reader.any();
  const subject = reader.any();
  reader.any();
  const extensions = extensionsOf(reader).byId;
  const value = extensions.get(SUBJECT_KEY_IDENTIFIER)?.value;
  return { subject, keyId: value && new DerReader(value).octetString(), extensions };
}

export interface ReadExtension {
  readonly isCritical: boolean;
  readonly value: Uint8Array;
}

/** The extensions of what is to be signed, where the reader has come to them. */
export function extensionsOf(reader: DerReader) {
  const byId = new Map<string, ReadExtension>();
  const outer = reader.context(3);
  const list = outer?.sequence();
  outer?.end();
  let count = 0;
  while (list && !list.isAtEnd) {
    const one = list.sequence();
    const id = one.oid();
    const next = one.primitive();
    const isCritical = next.tag === 0x01;
    byId.set(id, { isCritical, value: isCritical ? one.octetString() : next.content });
    one.end();
    count += 1;
  }
  return { byId, count, size: byId.size };
}
