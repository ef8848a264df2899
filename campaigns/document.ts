// Judges the OpenAPI document by the tools of others: linters, a generator of types, and a fuzzer that compares the service
// with the document for N seconds. None of them is a dependency: each is used if it is found on the PATH.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { newFolder } from '../test/support/app.ts';
import { documentOf, type Json, operationsIn } from '../test/support/document.ts';
import { ExampleSession, runSession } from '../test/support/example-session.ts';
import type { Campaign, Print } from './campaign.ts';

/** Longer than the fuzzer's own time: it reports at the end. */
const GRACE_MS = 120_000;
const MAX_SHOWN = 20_000;

export const judgeDocument: Campaign = {
  about: 'lints the OpenAPI document and fuzzes the service with it, N seconds, by whichever tools are installed',
  defaultN: 600,
  async run(n, print) {
    await using session = await ExampleSession.open();
    const { key } = await runSession(session);
    const document = await documentOf(session.app);
    const folder = newFolder();
    const at = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const file = at('openapi.json', JSON.stringify(published(document)));
    const fuzzed = at('live.json', JSON.stringify(live(document, session.calls)));
    at('hooks.py', HOOKS);
    const headers = [`X-CC-Key-ID: ${key.keyId}`, `X-CC-Auth-Key: ${key.authKey}`].flatMap((header) => ['-H', header]);
    const tools: readonly Tool[] = [
      ['spectral', 'lint', '--fail-severity', 'hint', '-r', at('spectral.yaml', 'extends: ["spectral:oas"]\n'), file],
      ['redocly', 'lint', '--config', at('redocly.yaml', REDOCLY), file],
      ['openapi-typescript', file, '--output', join(folder, 'openapi.ts')],
      [
        ...(['schemathesis', '--config-file', at('schemathesis.toml', SCHEMATHESIS), 'run', fuzzed] as const),
        ...['--url', session.app.url, ...headers, '--max-time', String(n), '--continue-on-failure', '--no-color'],
      ],
    ];
    // The clock of a test stands still, and limits of the rate would never end.
    const clock = setInterval(() => session.app.advance(1_000), 1_000);
    try {
      const broken: string[] = [];
      for (const tool of tools) broken.push(...(await run(tool, folder, n * 1_000 + GRACE_MS, print)));
      const faults = session.app.lines.flatMap((line) => (line.event === 'error' ? [`logged: ${line.message}`] : []));
      return [...broken, ...new Set(faults)];
    } finally {
      clearInterval(clock);
    }
  },
};

/** The paths of existing clients: a fixed segment wins over a parameter, and no id is `alternate`. */
const REDOCLY = 'extends: [recommended]\nrules:\n  no-ambiguous-paths: off\n';

/** Operations with rules that no schema can express: what a CSR holds, whether a receiver answers, what a page was listed by. */
const RULED = [
  ...['listOrders', 'listCertificates'],
  ...['placeOrder', 'reissueCertificate', 'changeDcvMethod', 'updateAccount', 'rescheduleRevocation', 'testCallback'],
  ...['saveCallbackSettings', 'rotateCallbackSecret', 'resendDelivery', 'resendDeliveries', 'changeCloudKeyPin'],
  ...['destroyCloudKey', 'getSigningCredential', 'authorizeSigning', 'signHashes', 'revokeSigningToken'],
];
const SCHEMATHESIS = `
hooks = "hooks.py"

[[operations]]
include-operation-id = ${JSON.stringify(RULED)}
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 422, 429, "5xx"]

# The fuzzer takes the product of POST /orders/{id} for the id of the order.
[[operations]]
include-path-regex = "^/openapi/v3/orders/"
checks.ensure_resource_availability.enabled = false
`;

/** Contract `envelope 21`: blanks are no body, which the fuzzer takes for malformed JSON. It sends a brace in their place. */
const HOOKS = `
import schemathesis

@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, (bytes, str)) and not case.body.strip():
        case.body = b"{"
`;

/** As an operator publishes it: linters object to loopback. */
const published = (document: Json): Json => ({ ...document, servers: [{ url: 'https://certificates.test.dev' }] });

/** With the ids of the session as examples, and without the catch-all: an error that is not listed is a fault. */
function live(document: Json, calls: ExampleSession['calls']): Json {
  const copy = structuredClone(document);
  for (const { operation } of operationsIn(copy)) {
    delete operation.responses.default;
    // The fuzzer is given one way to authenticate, and would invent credentials for the others.
    if (operation.security?.length > 0) operation.security = document.security;
    const call = calls.find(({ operationId }) => operationId === operation.operationId);
    for (const parameter of operation.parameters ?? []) {
      const value = call?.parameters?.[parameter.name];
      if (value !== undefined) parameter.example = value;
    }
    const [media] = Object.values<Json>(operation.requestBody?.content ?? {});
    if (media && call?.body) media.examples = { live: { value: call.body } };
  }
  return copy;
}

type Tool = readonly [name: string, ...options: string[]];

async function run([name, ...options]: Tool, cwd: string, mostMs: number, print: Print): Promise<string[]> {
  const child = spawn(name, options, { cwd, stdio: ['ignore', 'pipe', 'pipe'], timeout: mostMs, env: environment() });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-MAX_SHOWN);
    });
  }
  const [code] = await once(child, 'close').catch((error) => [error]);
  if (code?.code === 'ENOENT') {
    print(`${name}: not installed, not asked`);
    return [];
  }
  print(output.trim());
  return code === 0 ? [] : [`${name} ended with ${code}`];
}

/** Tools of npm bring a Node of their own choice; ours comes after it. */
const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: [process.env.PATH, join(process.execPath, '..')].join(delimiter),
  REDOCLY_TELEMETRY: 'off',
});
