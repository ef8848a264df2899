// A double of the signer process, for faults that no token can be made to have on demand. The module of its URI is a JSON
// file: keys by label (PKCS#8, PEM), and how to behave, read again for every request. It is no proof that a token works.
import { constants, createPrivateKey, createPublicKey, privateEncrypt } from 'node:crypto';
import { appendFileSync, createWriteStream, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const answers = createWriteStream('', { fd: 3 });
const say = (answer) => answers.write(`${JSON.stringify(answer)}\n`);
const failure = (kind, text, isUnsigned = true) => ({ kind, text, isUnsigned });
let file;
const world = () => JSON.parse(readFileSync(file, 'utf8'));

const BEHAVIOURS = {
  sign: async (request, key) => say({ kind: 'signature', id: request.id, signature: await signature(request, key) }),
  hang() {},
  crash: () => process.kill(process.pid, 'SIGKILL'),
  garbage: () => answers.write('no answer\n'),
  flood: () => answers.write('x'.repeat(1_000_000)),
  stranger: (request) => say({ kind: 'signature', id: request.id + 1_000, signature: '00' }),
  wrong: (request, key) => say({ kind: 'signature', id: request.id, signature: '00'.repeat(key ? 64 : 1) }),
  lost: (request) => say({ kind: 'failed', id: request.id, failure: failure('token', 'CKR_DEVICE_REMOVED') }),
  unsure: (request) => say({ kind: 'failed', id: request.id, failure: failure('token', 'CKR_DEVICE_ERROR', false) }),
  missing: (request) => say({ kind: 'failed', id: request.id, failure: failure('key', 'the token has no such key') }),
};

async function signature({ keyType, data }, key) {
  const bytes = Buffer.from(data, 'hex');
  if (keyType === 'rsa') return privateEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, bytes).toString('hex');
  return (await ecdsaOverDigest(key, bytes)).toString('hex');
}

/** Over a digest, which node:crypto would hash again. Returns two numbers of equal length. */
async function ecdsaOverDigest(key, digest) {
  const { p256, p384 } = await import('@noble/curves/nist.js');
  const { d, crv } = key.export({ format: 'jwk' });
  const curve = { 'P-256': p256, 'P-384': p384 }[crv];
  return Buffer.from(curve.sign(digest, Buffer.from(d, 'base64url'), { prehash: false }));
}

let opening;
createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (!opening) {
    opening = message;
    file = message.module;
    const { pin, opens = true, log } = world();
    if (log) appendFileSync(log, `open ${message.pin === pin}\n`);
    if (opens === 'hang') return;
    if (message.pin !== pin) say({ kind: 'refused', failure: failure('pin', 'CKR_PIN_INCORRECT') });
    else if (!opens) say({ kind: 'refused', failure: failure('token', 'the module has no such token') });
    else say({ kind: 'ready' });
    return;
  }
  const { keys, behaves = 'sign', log } = world();
  if (log) appendFileSync(log, `${message.act} ${message.data ?? ''}\n`);
  const pem = keys[message.key.object];
  const key = pem && createPrivateKey(pem);
  if (!key) return BEHAVIOURS.missing(message);
  if (message.act === 'sign') return BEHAVIOURS[behaves](message, key);
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('hex');
  const curve = key.asymmetricKeyDetails.namedCurve;
  const keyType = { prime256v1: 'p256', secp384r1: 'p384' }[curve] ?? 'rsa';
  say({ kind: 'key', id: message.id, key: { keyType, spki, isExtractable: false } });
});
process.stdin.on('end', () => process.exit());
