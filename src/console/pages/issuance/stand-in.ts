// A key that is thrown away, so that the plan of a reissue can be seen before there is a signing request. It is sent with dry
// runs only.
import { useEffect, useState } from 'preact/hooks';
import { makeCsr } from '../../pki/csr.ts';
import type { Schema } from '../../shell/wire.ts';
import type { Body, RequestForm } from './request.ts';

interface StandIn {
  /** The product needs a signing request, and the form has none. */
  readonly isMissing: boolean;
  readonly isUsed: boolean;
  readonly fill: (body: Body) => Body;
}

export function useStandIn({ csr: rule, keys }: Schema<'Product'>, form: RequestForm): StandIn {
  const [made, setMade] = useState<string | undefined>();
  const isMissing = rule === 'required' && form.keySource === '' && form.csr.trim() === '';
  const canServe = isMissing && globalThis.isSecureContext && keys.some(({ type }) => type === 'p256');
  useEffect(() => {
    if (canServe && made === undefined) makeCsr('p256', []).then(({ csr }) => setMade(csr));
  }, [canServe]);
  const csr = canServe ? made : undefined;
  return {
    isMissing,
    isUsed: csr !== undefined,
    fill: (body) => (csr === undefined ? body : { ...body, certificate: { ...body.certificate, csr } }),
  };
}
