// An operation to try: its request filled in with the account's own values, the command for it, and the answer when it is sent.
import { h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { signedOut } from '../shell/api.ts';
import { tags, type View } from '../shell/html.ts';
import { texts } from '../shell/language.ts';
import { listing, problem } from '../shell/parts.ts';
import { useAction, useResource } from '../shell/resource.ts';
import { readSession, session } from '../shell/session.ts';
import { KeyForm } from '../shell/sign-in.ts';
import { answerView } from './answer.ts';
import { type AskedChoice, askFirst } from './ask-first.ts';
import { examplesOf, keyHeaders, type Operation, type Reference } from './document.ts';
import { canBeSent, type Exchange, send } from './exchange.ts';
import { ownBody, ownValues, sourceOf } from './own-values.ts';
import { changesSomething, curlOf, DRY_RUN, type Draft, hasDryRun, isDryRun, jsonFault, prepare } from './request.ts';
import { requestFields } from './request-fields.ts';

const { button, details, div, form, h2, p, section, summary } = tags;

const t = texts({
  en: {
    title: 'Try it',
    command: 'Command',
    signIn: 'Sign in to send this request',
    why: 'The page then fills in ids and names of your account. What you send here is real, and so are its effects.',
    operator: 'You are signed in as an operator, who has no account. Signing in with a key ends that session.',
    tokens: 'The signing API has tokens of its own, which this page does not hold: paste the command.',
    send: 'Send',
    dryRun: 'Send the dry run',
    sending: 'Sending…',
    body: 'This is not JSON: {fault}',
    route:
      'Sent with your session, to the same operation under /console/api/account. The command sends the same with your key.',
  },
  zh: {
    title: '试用',
    command: '命令',
    signIn: '登录后发送此请求',
    why: '页面会填入您账户中的 ID 与域名。此处发送的是真实请求，会产生真实效果。',
    operator: '您当前以操作员身份登录，没有账户。使用密钥登录会结束该会话。',
    tokens: '签名接口使用自己的令牌，本页面不保存令牌，请粘贴命令执行。',
    send: '发送',
    dryRun: '发送试运行',
    sending: '发送中…',
    body: '不是有效的 JSON：{fault}',
    route: '使用您的会话发送到 /console/api/account 下的同一接口。命令则使用您的密钥发送同样的请求。',
  },
});

interface TryItProps {
  readonly reference: Reference;
  readonly operation: Operation;
}

export function TryIt({ reference, operation }: TryItProps): View {
  const signedIn = session.value?.kind === 'account' && !signedOut.value ? session.value : undefined;
  const { draft, change, own, example } = useFilledDraft(operation, signedIn?.account?.id);
  const command = curlOf(operation, draft, {
    server: reference.document.servers[0]?.url ?? '',
    keyHeaders: keyHeaders(reference, operation),
    keyId: signedIn?.key_id,
  });
  const isOpen = signedIn !== undefined && canBeSent(operation);
  return section(
    { class: 'try', 'aria-label': t('title') },
    h2(t('title')),
    isOpen
      ? h(SendForm, { key: signedIn.account?.id ?? '', operation, draft, change, own, example, command })
      : [listing(t('command'), command), canBeSent(operation) ? invitation() : p({ class: 'note' }, t('tokens'))],
  );
}

const invitation = (): View =>
  details(
    { class: 'note' },
    summary(t('signIn')),
    p(t('why')),
    session.value?.kind === 'operator' && p(t('operator')),
    h(KeyForm, {}),
  );

type Filled = ReturnType<typeof useFilledDraft>;

/** The draft begins as the recorded example, and is filled in from the account once there is a session. */
function useFilledDraft(operation: Operation, accountId: string | undefined) {
  const examples = examplesOf(operation.requestBody);
  const [draft, setDraft] = useState<Draft>(() => ({
    values: hasDryRun(operation) ? { [DRY_RUN]: 'true' } : {},
    body: asText(examples[0]?.[1]),
  }));
  const [isEdited, setEdited] = useState(false);
  const [chosen, setChosen] = useState(examples[0]?.[0] ?? '');
  const [parameter = ''] = /(?<=\{)\w+/.exec(operation.path) ?? [];
  const source = accountId !== undefined && canBeSent(operation) ? sourceOf(operation) : undefined;
  const own = useResource(async (signal) => (source ? await ownValues(source, signal) : []), [operation.id, accountId]);
  const first = own.data?.[0]?.value;
  useEffect(() => {
    if (first === undefined) return;
    setDraft(({ values, ...rest }) => ({ ...rest, values: { ...values, [parameter]: values[parameter] || first } }));
  }, [first]);

  const id = draft.values[parameter] ?? '';
  useEffect(() => {
    if (isEdited || examples.length === 0) return;
    const recorded = { chosen: examples.find(([name]) => name === chosen)?.[1], all: examples.map(([, one]) => one) };
    const fill = (value: unknown) => setDraft((before) => ({ ...before, body: asText(value) }));
    if (accountId === undefined) return fill(recorded.chosen);
    const abandoned = new AbortController();
    ownBody(operation, recorded, id, abandoned.signal).then(
      (body) => !abandoned.signal.aborted && fill(body),
      // An id that the account does not have: the example stays as it is recorded.
      () => !abandoned.signal.aborted && fill(recorded.chosen),
    );
    return () => abandoned.abort();
  }, [id, chosen, accountId, isEdited]);

  return {
    draft,
    own,
    change: (changed: Partial<Draft>) => {
      if (changed.body !== undefined) setEdited(true);
      setDraft((before) => ({ ...before, ...changed }));
    },
    example: {
      names: examples.map(([name]) => name),
      chosen,
      choose: (name: string) => {
        setEdited(false);
        setChosen(name);
      },
    },
  };
}

const asText = (value: unknown): string => (value === undefined ? '' : JSON.stringify(value, null, 2));

interface SendFormProps extends Filled {
  readonly operation: Operation;
  readonly command: string;
}

function SendForm({ operation, draft, change, own, example, command }: SendFormProps): View {
  const [answer, setAnswer] = useState<Exchange | undefined>();
  const [isAsking, setAsking] = useState(false);
  const [rehearsed, setRehearsed] = useState('');
  const action = useAction(async (sent: Draft) => {
    setAnswer(undefined);
    const received = await send(prepare(operation, sent));
    setAnswer(received);
    if (received.status === 401) await readSession();
    if (isDryRun(sent) && received.status < 300) setRehearsed(withoutDryRun(sent));
  });
  const fault = jsonFault(draft.body);
  const needsConsent = changesSomething(operation) && !isDryRun(draft);
  const submit = (event: Event) => {
    event.preventDefault();
    if (fault !== undefined) return;
    if (needsConsent) setAsking(true);
    else action.run(draft);
  };
  const decide = (choice: AskedChoice) => {
    setAsking(false);
    if (choice === 'send') action.run(draft);
    if (choice === 'dryRun') {
      const rehearsal = { ...draft, values: { ...draft.values, [DRY_RUN]: 'true' } };
      change(rehearsal);
      action.run(rehearsal);
    }
  };
  const offersDryRun = hasDryRun(operation) && rehearsed !== withoutDryRun(draft);
  return div(
    { class: 'columns' },
    form(
      { onSubmit: submit },
      requestFields({ operation, draft, change, own: own.data ?? [], example }),
      own.error && problem(own.error, own.reload),
      fault !== undefined && p({ class: 'problem', role: 'alert' }, t('body', { fault })),
      isAsking
        ? askFirst(operation, offersDryRun, decide)
        : div(
            { class: 'actions' },
            button(
              { class: 'main', disabled: action.isRunning || fault !== undefined, 'aria-busy': action.isRunning },
              action.isRunning ? t('sending') : isDryRun(draft) ? t('dryRun') : t('send'),
            ),
          ),
      p({ class: 'quiet' }, t('route')),
    ),
    div(
      listing(t('command'), command),
      div({ 'aria-live': 'polite' }, action.error && problem(action.error), answer && answerView(answer)),
    ),
  );
}

/** Equal for a request and its dry run. */
const withoutDryRun = ({ values, body }: Draft): string => JSON.stringify({ ...values, [DRY_RUN]: undefined, body });
