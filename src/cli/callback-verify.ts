// reseal callback verify: verifies one received callback step by step, and shows what each step compares. For authors of
// receivers; needs neither store nor service.
import { readFileSync } from 'node:fs';
import { Secret } from '../domain/secret.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { signatureOf } from '../usecases/callbacks/sign-callback.ts';
import type { Command } from './command.ts';
import { firstLineOf } from './values.ts';

const TOLERANCE_SECONDS = 300;

interface Step {
  readonly step: string;
  readonly ok: boolean;
  readonly text: string;
}

export const callbackVerify: Command = {
  store: 'none',
  about: 'verify a received callback step by step, as a receiver should',
  examples: [
    'callback verify --body body.json --id ID --timestamp SECONDS --signature v1,… --secret-file secret.txt',
    'callback verify … --auth-file received.txt --access-key-file key.txt   # the header X-CC-Callback-Auth too',
  ],
  positionals: [],
  options: {
    body: { type: 'string', about: 'file with the body, byte for byte as received' },
    id: { type: 'string', about: 'the header webhook-id' },
    timestamp: { type: 'string', about: 'the header webhook-timestamp' },
    signature: { type: 'string', about: 'the header webhook-signature' },
    'secret-file': { type: 'string', about: 'file with the signing secret (whsec_…)' },
    'auth-file': { type: 'string', about: 'file with the header X-CC-Callback-Auth as received' },
    'access-key-file': { type: 'string', about: 'file with your access key' },
  },
  async run({ options }, { now }) {
    const given = (name: string): string => {
      if (typeof options[name] === 'string') return options[name];
      throw new Problem(EXIT.usage, `--${name} is missing`, 'See: reseal callback verify --help');
    };
    const [id, timestamp, signature] = [given('id'), given('timestamp'), given('signature')];
    const body = bytesIn(given('body'));
    const seconds = Number(timestamp);
    const secret = firstLineOf(given('secret-file'));
    if (!secret.startsWith('whsec_')) {
      throw new Problem(EXIT.usage, 'the signing secret begins with whsec_', 'Give the file with the whole secret.');
    }
    const expected = signatureOf(new Secret(secret), id, timestamp, body);
    const ageSeconds = Math.floor(now() / 1000) - seconds;
    const steps: Step[] = [
      {
        step: 'webhook-timestamp',
        ok: /^\d{1,12}$/.test(timestamp) && Math.abs(ageSeconds) <= TOLERANCE_SECONDS,
        text: Number.isNaN(ageSeconds)
          ? `${timestamp} is not a number of seconds`
          : `${timestamp} is ${ageSeconds} s ago; refuse what is more than ${TOLERANCE_SECONDS} s off`,
      },
      {
        step: 'webhook-signature',
        // During a rotation there are several, separated by blanks; one match is enough.
        ok: signature.split(' ').includes(expected),
        text: `HMAC-SHA256 of ${JSON.stringify(`${id}.${timestamp}.`)} and the ${body.length} bytes of the body\n  expected ${expected}\n  received ${signature}`,
      },
    ];
    if (options['auth-file'] !== undefined) {
      const isEqual = firstLineOf(given('auth-file')) === firstLineOf(given('access-key-file'));
      const text = isEqual ? 'equals your access key' : 'is another one than your access key';
      steps.unshift({ step: 'X-CC-Callback-Auth', ok: isEqual, text: `${text}; compare in constant time` });
    }
    const isGood = steps.every(({ ok }) => ok);
    return {
      json: { ok: isGood, steps },
      text: `${steps.map(({ ok, step, text }) => `${ok ? 'ok    ' : 'WRONG '} ${step}: ${text}`).join('\n')}\n\n${
        isGood ? 'This callback is genuine.' : 'Do not believe this callback.'
      }`,
      exitCode: isGood ? EXIT.ok : EXIT.refused,
    };
  },
};

function bytesIn(file: string): Uint8Array {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Problem(EXIT.usage, `${file} cannot be read`, 'Give the path of a file you may read.', { cause: error });
  }
}
