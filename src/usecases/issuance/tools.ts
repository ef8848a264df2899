// What the issuance use cases work with, and what a reissue is called with.

import type { Caller } from '../../domain/access/credential.ts';
import type { CertificateAuthority } from '../../domain/certificate/authority.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import type { KeyMaker } from '../../domain/cloud-keys/ports.ts';
import type { OrderId } from '../../domain/ids.ts';
import type { ReissueRequest } from '../../domain/issuance/request.ts';
import type { PublishLists } from '../../domain/revocation/ports.ts';
import type { ValidationTools } from '../validation/check-names.ts';

export interface ReissueTools extends ValidationTools {
  readonly authority: CertificateAuthority;
  readonly keys: KeyMaker;
  readonly publishLists: PublishLists;
  readonly readCsr: (text: string) => PublicKey;
  readonly requireStrongKey: (key: PublicKey) => void;
  /** How long a certificate waits for proof. */
  readonly pendingMs: number;
}

export interface ReissueCall {
  readonly caller: Caller;
  readonly orderId: OrderId;
  readonly request: ReissueRequest;
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null;
  readonly requestId: string;
  readonly remote: string;
}
