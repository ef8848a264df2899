// What a person sees when the sandbox is up: where it is, what to paste, and what is only allowed here.
import type { SandboxFile } from './folder.ts';

export function announcement(sandbox: SandboxFile, file: string, csr: string): string {
  const [account] = sandbox.accounts;
  const key = account?.credentials.find(({ kind }) => kind === 'standard');
  const [order] = sandbox.orders;
  const headers = `-H 'X-CC-Key-ID: ${key?.key_id}' \\
    -H 'X-CC-Auth-Key: ${key?.auth_key}'`;
  const body = { certificate: { csr, common_name: order?.common_name, sign_hash: 'sha256' } };
  return `
Reseal sandbox   ${sandbox.base_url}
Reference        ${sandbox.base_url}/docs
Accounts, keys   ${file}
Trust these      ${sandbox.trust.roots.join(' ')}

Paste this to see that it works:

  curl -s ${sandbox.base_url}/openapi/v3/account \\
    ${headers}

And this to reissue the certificate of a sandbox order (the CSR is on a key that nobody has: use your own):

  curl -s ${sandbox.base_url}/openapi/v3/orders/${order?.id}/reissue \\
    ${headers} \\
    -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'

Only because this is a sandbox:
  - ${sandbox.accounts.length} demo accounts exist, and their keys are in clear in sandbox.json (mode 0600).
  - ${sandbox.orders.length} demo orders exist, and their names count as validated although nobody proved them.

Stop with Ctrl-C. Start afresh with: npx reseal sandbox reset
`;
}
