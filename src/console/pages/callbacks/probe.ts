// Sends one real, simulated callback, and draws how far it came.
import { useState } from 'preact/hooks';
import { account, Problem } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, fact, field, listing, problem } from '../../shell/parts.ts';
import { useAction } from '../../shell/resource.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { waterfall } from './waterfall.ts';

const { button, details, div, dl, form, h2, input, p, section, summary } = tags;

const t = texts({
  en: {
    title: 'Test',
    lead: 'Sends one callback with made-up ids, also while callbacks are paused. Nothing is saved.',
    url: 'Another address (optional)',
    urlHint: 'For this test only. Without a key of its own it is sent the saved access key.',
    key: 'Another access key (optional)',
    send: 'Send a test callback',
    sending: 'Calling the receiver…',
    passed: 'The receiver answered 200.',
    failed: 'The callback did not arrive.',
    tls: 'TLS version',
    expires: 'Receiver’s certificate ends in',
    days: '{count} days',
    status: 'HTTP status',
    answer: 'Answer of the receiver',
    temporary: 'Test another address',
  },
  zh: {
    title: '测试',
    lead: '发送一条使用虚构 ID 的回调，暂停期间也可测试。不保存任何内容。',
    url: '其他地址（可选）',
    urlHint: '仅用于本次测试。未提供密钥时，将使用已保存的访问密钥。',
    key: '其他访问密钥（可选）',
    send: '发送测试回调',
    sending: '正在调用接收端…',
    passed: '接收端返回 200。',
    failed: '回调未送达。',
    tls: 'TLS 版本',
    expires: '接收端证书剩余有效期',
    days: '{count} 天',
    status: 'HTTP 状态码',
    answer: '接收端的响应',
    temporary: '测试其他地址',
  },
});

type Report = Schema<'CallbackReport'>;

/** A refusal that has a report in its details came as far as the network. */
const reportIn = (error: Error | undefined): Report | undefined =>
  error instanceof Problem && 'phases_ms' in error.details ? (error.details as unknown as Report) : undefined;

export function TestCall(): View {
  const [url, setUrl] = useState('');
  const [accessKey, setAccessKey] = useState('');
  const [report, setReport] = useState<Report | undefined>();
  const test = useAction(async () => {
    setReport(undefined);
    const body = { ...(url !== '' && { url }), ...(accessKey !== '' && { access_key: accessKey }) };
    const { callback } = await account<Data<'CallbackTestResponse'>>('PUT', 'account/callback/test', { body });
    setReport(callback);
  });
  const failed = reportIn(test.error);
  const submit = (event: Event) => {
    event.preventDefault();
    test.run();
  };
  return section(
    { 'aria-label': t('title') },
    h2(t('title')),
    p({ class: 'quiet' }, t('lead')),
    form(
      { onSubmit: submit },
      details(
        summary(t('temporary')),
        field(
          t('url'),
          (attributes) =>
            input({
              ...attributes,
              name: 'test_url',
              type: 'url',
              value: url,
              placeholder: 'https://',
              onInput: (event) => setUrl(event.currentTarget.value),
            }),
          t('urlHint'),
        ),
        field(t('key'), (attributes) =>
          input({
            ...attributes,
            name: 'test_key',
            type: 'password',
            autocomplete: 'off',
            value: accessKey,
            onInput: (event) => setAccessKey(event.currentTarget.value),
          }),
        ),
      ),
      div({ class: 'actions' }, button({ class: 'main', disabled: test.isRunning }, t('send'))),
    ),
    test.isRunning && p({ class: 'quiet', role: 'status' }, t('sending')),
    report && resultView(report, false),
    failed && resultView(failed, true),
    test.error && problem(test.error),
  );
}

const resultView = (report: Report, hasFailed: boolean): View =>
  div(
    { class: 'result', role: 'status' },
    p(badge(hasFailed ? 'bad' : 'good', t(hasFailed ? 'failed' : 'passed'))),
    waterfall(report, hasFailed),
    dl(
      fact(t('status'), report.http_status),
      fact(t('tls'), report.tls_version),
      fact(
        t('expires'),
        report.certificate_expires_in_days === null ? null : t('days', { count: report.certificate_expires_in_days }),
      ),
    ),
    report.excerpt && listing(t('answer'), report.excerpt),
  );
