// What a person sees when the sandbox is up: where it is, what to paste, and what is only allowed here.
import type { SandboxFile } from './folder.ts';

export function announcement(sandbox: SandboxFile, file: string): string {
  const [account] = sandbox.accounts;
  const key = account?.credentials.find(({ kind }) => kind === 'standard');
  return `
Reseal sandbox   ${sandbox.base_url}
Reference        ${sandbox.base_url}/docs
Accounts, keys   ${file}

Paste this to see that it works:

  curl -s ${sandbox.base_url}/openapi/v3/account \\
    -H 'X-CC-Key-ID: ${key?.key_id}' \\
    -H 'X-CC-Auth-Key: ${key?.auth_key}'

Only because this is a sandbox:
  - ${sandbox.accounts.length} demo accounts exist, and their keys are in clear in sandbox.json (mode 0600).

Stop with Ctrl-C. Start afresh with: npx reseal sandbox reset
`;
}
