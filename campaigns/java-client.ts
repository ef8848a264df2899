// Generates a Java client from the OpenAPI document, compiles it, and lets it make a customer's journey. Needs Java, Maven
// and its repository, and the jar of openapi-generator-cli in OPENAPI_GENERATOR_JAR; they are no dependencies.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { newFolder } from '../test/support/app.ts';
import { startCallbackApp } from '../test/support/callback-app.ts';
import { documentOf } from '../test/support/document.ts';
import { csrFor } from '../test/support/orders.ts';
import type { Campaign } from './campaign.ts';

const JOURNEY = new URL('./clients/Journey.java', import.meta.url);
const TOOL_MS = 600_000;

export const javaClient: Campaign = {
  about: 'generates a Java client from the document (OPENAPI_GENERATOR_JAR) and makes N journeys with it',
  defaultN: 1,
  async run(n, print) {
    const jar = process.env.OPENAPI_GENERATOR_JAR;
    if (!jar) throw new Error('OPENAPI_GENERATOR_JAR names no openapi-generator-cli.jar');
    await using world = await startCallbackApp();
    const { app, outside } = world;
    const folder = newFolder();
    const java = join(folder, 'java');
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(await documentOf(app)));
    const tool = (name: string, options: readonly string[], cwd = folder) =>
      execFileSync(name, options, { cwd, stdio: 'pipe', timeout: TOOL_MS });
    // By default the generator sends an empty list for one that was left out: no action would be called back.
    const options = ['--library', 'native', '--additional-properties=containerDefaultToNull=true'];
    tool('java', ['-jar', jar, 'generate', '-i', 'openapi.json', '-g', 'java', '-o', java, ...options]);
    const sources = join(java, 'src/main/java');
    mkdirSync(sources, { recursive: true });
    copyFileSync(JOURNEY, join(sources, 'Journey.java'));
    tool('mvn', ['-q', 'compile', 'dependency:copy-dependencies', '-DincludeScope=runtime'], java);
    print('generated and compiled');
    const classes = [join(java, 'target/classes'), join(java, 'target/dependency/*')].join(':');
    const broken: string[] = [];
    for (let round = 1; round <= n; round += 1) {
      const key = await app.newKey();
      const env = {
        ...process.env,
        ...{ JOURNEY_URL: app.url, JOURNEY_KEY_ID: key.keyId, JOURNEY_AUTH_KEY: key.authKey },
        ...{ JOURNEY_RECEIVER: world.url('/java'), JOURNEY_CSR: csrFor() },
      };
      const journey = spawn('java', ['-cp', classes, 'Journey'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
      const ended = once(journey, 'close');
      for await (const line of createInterface({ input: journey.stdout })) {
        print(line);
        const [, name, value] = /^TXT (\S+) (\S+)$/.exec(line) ?? [];
        if (name === undefined || value === undefined) continue;
        outside.dns.set(name, 'TXT', [value]);
        journey.stdin.write('published\n');
      }
      const [code] = await ended;
      if (code !== 0) broken.push(`journey ${round} ended with ${code}`);
    }
    return broken;
  },
};
