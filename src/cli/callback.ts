// reseal callback show | set | delete | test | rotate-secret: the operations of the API, for operators. Access keys are
// read from a file or standard input (-), because arguments are visible to every user of the machine.

import type { CallbackSettings } from '../domain/callbacks/callback.ts';
import type { HeldBackEvents } from '../domain/callbacks/ports.ts';
import { reportView } from '../domain/callbacks/report.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { byOperator } from '../usecases/access/audit.ts';
import type { Arguments, Command } from './command.ts';
import { firstLineOf, table, time } from './values.ts';

const settingsView = (settings: CallbackSettings) => ({
  url: settings.url,
  disabled: settings.isDisabled,
  ...(settings.enabledActions && { enabled_actions: settings.enabledActions }),
  updated_at: time(settings.updatedAt),
});

const settingsText = (settings: CallbackSettings): string =>
  table(
    ['URL', 'STATE', 'ACTIONS', 'UPDATED'],
    [
      [
        settings.url,
        settings.isDisabled ? 'paused' : 'active',
        settings.enabledActions?.join(' ') ?? 'all but order:expiring',
        time(settings.updatedAt),
      ],
    ],
  );

const suppressedText = (accountId: string, { isDisabled }: CallbackSettings, { count, hasMore }: HeldBackEvents) =>
  `\n\n${hasMore ? 'More than ' : ''}${count} were suppressed while callbacks were paused. To send them again:` +
  `${isDisabled ? `\n  reseal callback set ${accountId} --enabled` : ''}` +
  `\n  reseal callback replay ${accountId} --state suppressed`;

const ACCESS_KEY = { type: 'string', about: 'file with the access key; - reads it from standard input' } as const;

/** The body fields of --url and --access-key-file. */
const targetOf = ({ url, 'access-key-file': keyFile }: Arguments['options']) => ({
  ...(url !== undefined && { url }),
  ...(keyFile !== undefined && { access_key: firstLineOf(String(keyFile)) }),
});

export const callbackShow: Command = {
  store: 'existing',
  about: 'show the callback settings of an account; its secrets are not shown',
  examples: ['callback show ACCOUNT'],
  positionals: ['ACCOUNT'],
  options: {},
  async run({ positionals: [accountId = ''] }, { withCallbacks }) {
    const { settings, heldBack } = await withCallbacks(async ({ account, callbacks }) => {
      await account(accountId);
      return { settings: await callbacks.show(accountId), heldBack: await callbacks.heldBack(accountId) };
    });
    if (!settings) return { json: { callback: null }, text: 'The account has no callback settings.' };
    const { count, hasMore, since } = heldBack;
    const suppressed = { count, has_more: hasMore, since: since === null ? null : time(since) };
    return {
      json: { callback: { ...settingsView(settings), suppressed } },
      text: settingsText(settings) + (count === 0 ? '' : suppressedText(accountId, settings, heldBack)),
    };
  },
};

export const callbackSet: Command = {
  store: 'existing',
  about: 'save callback settings; a new signing secret is shown once',
  examples: [
    'callback set ACCOUNT --url https://hooks.example.com/certs --access-key-file key.txt',
    'callback set ACCOUNT --disabled   # pauses; --enabled resumes',
    'callback set ACCOUNT --actions order:issued,order:revoked   # only these; --actions all',
  ],
  positionals: ['ACCOUNT'],
  options: {
    url: { type: 'string', about: 'where callbacks go; together with --access-key-file' },
    'access-key-file': ACCESS_KEY,
    disabled: { type: 'boolean', about: 'pause callbacks' },
    enabled: { type: 'boolean', about: 'resume callbacks' },
    actions: { type: 'string', about: 'comma-separated actions to call back; or all, which is all but order:expiring' },
  },
  async run({ positionals: [accountId = ''], options }, { withCallbacks }) {
    if (options.enabled && options.disabled) {
      throw new Problem(EXIT.usage, '--enabled and --disabled contradict each other', 'Give one of them.');
    }
    const target = targetOf(options);
    const { settings, signingSecret } = await withCallbacks(async ({ account, callbacks }) => {
      await account(accountId);
      // Over HTTP omitted fields are reset; on the command line they keep their saved value.
      const saved = await callbacks.show(accountId);
      const actions = options.actions === undefined ? saved?.enabledActions?.join() : String(options.actions);
      return await callbacks.save(byOperator(accountId), {
        ...target,
        disabled: options.disabled === true || (options.enabled !== true && saved?.isDisabled === true),
        ...(actions !== undefined && actions !== 'all' && { enabled_actions: actions.split(',') }),
      });
    });
    const secret = signingSecret?.reveal();
    return {
      json: { callback: settingsView(settings), ...(secret && { signing_secret: secret }) },
      text: `${settingsText(settings)}${secret ? `\n\nSigning secret: ${secret}\nKeep it now: it is not shown again.` : ''}`,
    };
  },
};

export const callbackDelete: Command = {
  store: 'existing',
  about: 'delete the callback settings of an account, with their signing secret',
  examples: ['callback delete ACCOUNT'],
  positionals: ['ACCOUNT'],
  options: {},
  async run({ positionals: [accountId = ''] }, { withCallbacks }) {
    const deleted = await withCallbacks(async ({ account, callbacks }) => {
      await account(accountId);
      return await callbacks.remove(byOperator(accountId));
    });
    return { json: { deleted }, text: deleted ? 'Deleted.' : 'There was nothing to delete.' };
  },
};

export const callbackTest: Command = {
  store: 'existing',
  about: 'send a simulated order:issued callback to the receiver, and report the outcome',
  examples: [
    'callback test ACCOUNT',
    'callback test ACCOUNT --url https://hooks.example.com/certs --access-key-file key.txt',
  ],
  positionals: ['ACCOUNT'],
  options: { url: { type: 'string', about: 'instead of the saved one, for this test' }, 'access-key-file': ACCESS_KEY },
  async run({ positionals: [accountId = ''], options }, { withCallbacks }) {
    const body = targetOf(options);
    const report = await withCallbacks(async ({ account, sendTest }) => await sendTest(await account(accountId), body));
    const view = reportView(report);
    const phases = Object.entries(view.phases_ms).map(([phase, ms]) => `${phase} ${ms} ms`);
    const days = view.certificate_expires_in_days;
    return {
      json: { callback: view },
      text: `The receiver answered 200.\n${phases.join(', ')}\n${view.tls_version}, certificate expires in ${days} days`,
    };
  },
};

export const callbackRotate: Command = {
  store: 'existing',
  about: 'create a new signing secret, shown once; the former one also signs for a while',
  examples: ['callback rotate-secret ACCOUNT'],
  positionals: ['ACCOUNT'],
  options: {},
  async run({ positionals: [accountId = ''] }, { withCallbacks }) {
    const { settings, signingSecret } = await withCallbacks(async ({ account, callbacks }) => {
      await account(accountId);
      return await callbacks.rotateSecret(byOperator(accountId));
    });
    const until = time(settings.former?.until ?? null);
    const secret = signingSecret?.reveal();
    return {
      json: { signing_secret: secret, former_until: until },
      text: `Signing secret: ${secret}\nKeep it now: it is not shown again. The old one signs beside it until ${until}.`,
    };
  },
};
