// Issuer keys in a real token, SoftHSM, where it is installed. Without it these tests are not there; the last one says so.
import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pinFromFile } from '../../../src/adapters/hsm/pin-file.ts';
import { LIMITS } from '../../../src/adapters/hsm/signer.ts';
import { tokenKeys } from '../../../src/adapters/hsm/token-keys.ts';
import { NotSigned } from '../../../src/domain/certificate/authority.ts';
import { parseKeyUri } from '../../../src/domain/certificate/key-uri.ts';
import { newFolder } from '../../support/app.ts';
import { newSoftToken, SOFTHSM } from '../../support/softhsm.ts';

const BYTES = Buffer.from('what is signed');
let ran = 0;
const onToken = (name: string, prove: (module: string) => Promise<void>): void => {
  if (SOFTHSM === undefined) return;
  const module = SOFTHSM;
  test(`on a real token: ${name}`, async () => {
    await prove(module);
    ran += 1;
  });
};

function opened() {
  const silent = { onAnswered() {}, onFailed() {}, onStarted() {} };
  const folder = newFolder();
  const keys = tokenKeys({
    pinFor: ({ pinFile }, name) => pinFromFile(pinFile ?? undefined, name, folder),
    observe: () => silent,
    isWritable: true,
    limits: { ...LIMITS, waitMs: 10_000, firstDelayMs: 10, maxDelayMs: 100 },
  });
  return { ...keys, [Symbol.dispose]: () => keys.close() };
}

onToken('keys of every type are made, cannot leave it, and sign what verifies', async (module) => {
  const token = newSoftToken(module);
  using keys = opened();
  for (const [keyType, hashes] of [
    ['p256', ['sha256']],
    ['p384', ['sha384']],
    ['rsa', ['sha256', 'sha384', 'sha512']],
  ] as const) {
    const uri = token.uriOf(keyType);
    const facts = await keys.generate(parseKeyUri(uri), keyType);
    assert.deepEqual([facts.keyType, facts.isExtractable], [keyType, false]);
    const spki = Buffer.from(facts.spki ?? '', 'hex');
    const { modulusLength } = createPublicKey({ key: spki, format: 'der', type: 'spki' }).asymmetricKeyDetails ?? {};
    assert.equal(modulusLength, keyType === 'rsa' ? 3072 : undefined);
    const key = keys.open(uri, keyType, spki);
    // Each is verified before it is returned.
    for (const hash of hashes) assert.ok((await key.sign(hash, BYTES)).length > 60);
    const isKeyOf = await keys.prove(parseKeyUri(uri), keyType);
    const [own, other] = [createPublicKey({ key: spki, format: 'der', type: 'spki' }), generateKeyPairSync('ed25519')];
    assert.deepEqual([isKeyOf(own), isKeyOf(other.publicKey)], [true, false]);
    await assert.rejects(keys.generate(parseKeyUri(uri), keyType), NotSigned);
  }
});

onToken('a wrong PIN, an unknown token and an unknown key are told apart', async (module) => {
  const token = newSoftToken(module);
  const why = async (uri: string): Promise<string> => {
    using keys = opened();
    const error = await keys.describe(parseKeyUri(uri)).catch((one) => one);
    assert.ok(error instanceof NotSigned);
    return (error.cause as Error).message;
  };
  assert.match(await why(token.uriOf('none')), /no such key/);
  assert.match(await why(token.uriOf('none').replace('token=soft', 'token=hard')), /no such token/);
  assert.match(await why(token.uriOf('none').replace(module, join(token.tokens, 'none.so'))), /load/);
  writeFileSync(token.pinFile, '9999\n');
  assert.match(await why(token.uriOf('none')), /PIN_INCORRECT/);
});

onToken('a token that is taken away and returned signs again, without a restart of the service', async (module) => {
  const token = newSoftToken(module);
  using keys = opened();
  const uri = token.uriOf('issuing');
  const { spki } = await keys.generate(parseKeyUri(uri), 'p256');
  const key = keys.open(uri, 'p256', Buffer.from(spki ?? '', 'hex'));
  await key.sign('sha256', BYTES);
  renameSync(token.tokens, `${token.tokens}.away`);
  await assert.rejects(key.sign('sha256', BYTES), NotSigned);
  await assert.rejects(key.sign('sha256', BYTES), NotSigned);
  renameSync(`${token.tokens}.away`, token.tokens);
  let signature: Uint8Array | undefined;
  // Bounded by the test's time.
  while (!signature) {
    signature = await key.sign('sha256', BYTES).catch(() => undefined);
    if (!signature) await sleep(20);
  }
  assert.equal(keys.states()[0]?.state, 'ready');
});

test('how many tests ran against a real token', (context) => {
  context.diagnostic(
    `${ran} tests ran against a real token (${SOFTHSM ?? 'SoftHSM is not installed'}); doubles are not counted`,
  );
  assert.equal(ran, SOFTHSM === undefined ? 0 : 3);
});
