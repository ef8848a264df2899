// A linter for tests, in the form of zlint. What it does depends on the names in the certificate that it is shown.
import { existsSync, readFileSync, writeSync } from 'node:fs';

const pem = readFileSync(0, 'utf8');
/** While this file exists, what is to be refused for a time is refused. */
const [, , refusing = ''] = process.argv;
const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64').toString('latin1');
const has = (word) => der.includes(`${word}.`);

if (has('lint-crashes')) process.kill(process.pid, 'SIGSEGV');
else if (has('lint-floods')) flood();
else if (has('lint-mute')) process.exit(3);
else if (has('lint-babbles')) process.stdout.write('{"e_rule":{"result":"certainly"}}');
else {
  const isRefused = has('lint-refused') || (has('lint-later') && existsSync(refusing));
  const result = isRefused ? 'error' : has('lint-warned') ? 'warn' : 'pass';
  process.stdout.write(
    JSON.stringify({ e_test_rule: { result, details: 'a rule of this test' }, n_other: { result: 'NA' } }),
  );
}

/** Writes as fast as it is read: a stream would keep what is not. */
function flood() {
  for (;;) {
    try {
      writeSync(1, 'x'.repeat(65_536));
    } catch (error) {
      if (error.code !== 'EAGAIN') process.exit(0);
    }
  }
}
