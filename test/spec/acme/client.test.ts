// acme-client, which we did not write, against the service: orders by http-01 and dns-01, a wildcard, and a revocation.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, test } from 'node:test';
import acme from 'acme-client';
import { newEab } from '../../support/acme.ts';
import { page, startDomainApp } from '../../support/domain-app.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, newDomain, dns, files } = world;

test('acme-client orders by http-01 and by dns-01, a wildcard too, and revokes', async () => {
  const { accountId } = await app.newKey();
  const { kid, macKey: hmacKey } = await newEab(app, accountId);
  const client = new acme.Client({
    directoryUrl: `${app.url}/acme/directory`,
    accountKey: await acme.crypto.createPrivateEcdsaKey(),
    externalAccountBinding: { kid, hmacKey },
    // The defaults wait for seconds between attempts.
    backoffMin: 10,
    backoffMax: 50,
  });
  await client.createAccount({ termsOfServiceAgreed: true });
  const [plain, wild] = [newDomain(), newDomain()];
  const types: string[] = [];
  const issue = async (names: readonly string[], prefer: string): Promise<string> => {
    const [, csr] = await acme.crypto.createCsr(
      { commonName: names[0] ?? '', altNames: [...names] },
      await acme.crypto.createPrivateEcdsaKey(),
    );
    return await client.auto({
      csr,
      challengePriority: [prefer],
      // It would ask the resolver of this machine.
      skipChallengeVerification: true,
      async challengeCreateFn({ identifier: { value: host } }, { type, token }, text) {
        types.push(type);
        if (type === 'http-01') {
          dns.set(host, 'A', ['127.0.0.1']);
          files.set(`${host}/.well-known/acme-challenge/${token}`, page(text));
        } else dns.set(`_acme-challenge.${host}`, 'TXT', [text]);
      },
      challengeRemoveFn: async () => {},
    });
  };
  const first = await issue([plain], 'http-01');
  const second = await issue([`*.${wild}`], 'dns-01');
  assert.deepEqual(types, ['http-01', 'dns-01']);
  assert.deepEqual(
    [first, second].map((pem) => new X509Certificate(pem).subjectAltName),
    [`DNS:${plain}`, `DNS:*.${wild}`],
  );
  await client.revokeCertificate(first, { reason: 1 });
  await assert.rejects(client.revokeCertificate(first), /revoked already/);
});
