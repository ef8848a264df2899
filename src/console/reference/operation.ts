// One operation, and one event: what they take, what they answer.
import { h } from 'preact';
import { tags, type View } from '../shell/html.ts';
import { texts } from '../shell/language.ts';
import { listing, page } from '../shell/parts.ts';
import { type ApiEvent, examplesOf, type Operation, type Reference, successOf } from './document.ts';
import { errorPart } from './errors.ts';
import { bodyPart, parameterParts } from './field-table.ts';
import { breakable, prose } from './prose.ts';
import { TryIt } from './try-it.ts';

const { code, p, span } = tags;

const t = texts({
  en: {
    companion: 'companion',
    specified: 'specified',
    request: 'Request body',
    response: 'Response {status}',
    answer: 'Example of an answer',
    body: 'Body',
    example: 'Example',
  },
  zh: {
    companion: '扩展接口',
    specified: '规范接口',
    request: '请求内容',
    response: '响应 {status}',
    answer: '响应示例',
    body: '内容',
    example: '示例',
  },
});

const pretty = (value: unknown): string => JSON.stringify(value, null, 2);

export function OperationPage({ reference, operation }: { reference: Reference; operation: Operation }): View {
  const { method, path, summary = path, description, parameters = [], requestBody } = operation;
  const origin = operation['x-reseal-extension'] ? 'companion' : 'specified';
  const [status, answer] = successOf(operation);
  const [[, answered] = []] = examplesOf(answer);
  return page(
    summary,
    p(
      { class: 'route' },
      span({ class: 'method' }, method),
      ' ',
      code(...breakable(path)),
      ' ',
      span({ class: 'quiet' }, t(origin)),
    ),
    ...prose(description),
    h(TryIt, { reference, operation }),
    ...parameterParts(parameters),
    ...(requestBody ? bodyPart(t('request'), requestBody, 'required') : []),
    ...bodyPart(t('response', { status }), answer, 'optional'),
    answered !== undefined && listing(t('answer'), pretty(answered)),
    ...errorPart(reference, operation),
  );
}

/** What a receiver is sent. */
export function EventPage({ event: { name, post } }: { event: ApiEvent }): View {
  const [[, sent] = []] = examplesOf(post.requestBody);
  return page(
    name,
    ...prose(`${post.summary}\n\n${post.description ?? ''}`),
    ...parameterParts(post.parameters ?? []),
    ...bodyPart(t('body'), post.requestBody ?? {}, 'required'),
    sent !== undefined && listing(t('example'), pretty(sent)),
  );
}
