// The question before a request that changes something: what it will do, in words, and the dry run where there is one.
import { h } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { tags, type View } from '../shell/html.ts';
import { texts } from '../shell/language.ts';
import type { Operation } from './document.ts';

const { button, div, p } = tags;

export type AskedChoice = 'send' | 'dryRun' | 'leave';

const t = texts({
  en: {
    question: 'Send this for real?',
    changes: 'It changes your account.',
    send: 'Yes, send it',
    dryRun: 'Dry run first',
    leave: 'Do not send',
    reissueCertificate:
      'It issues a certificate. Certificates that carry a removed name, or all earlier ones, may be revoked.',
    revokeCertificate: 'It revokes the certificate now. A revocation cannot be undone.',
    rescheduleRevocation: 'It changes when the certificate is revoked. A time in the past revokes it now.',
    cancelOrder: 'It cancels the order, or its pending reissue.',
    placeOrder: 'It places an order.',
    destroyCloudKey: 'It destroys the key for good. Nothing can be signed with it any more.',
    deleteCallbackSettings: 'It deletes the callback settings. Events are no longer sent.',
    saveCallbackSettings: 'It replaces the callback settings. Events are sent there from now on.',
    rotateCallbackSecret: 'It makes a new signing secret. Receivers must know it before the old one ends.',
    changeCloudKeyPin: 'It changes the access code of the key. The old one is refused then.',
  },
  zh: {
    question: '确认真实发送？',
    changes: '此请求会变更您的账户。',
    send: '是，发送',
    dryRun: '先试运行',
    leave: '不发送',
    reissueCertificate: '将签发证书。包含被移除域名的证书或此前的证书可能被吊销。',
    revokeCertificate: '将立即吊销证书。吊销无法撤回。',
    rescheduleRevocation: '将更改证书的吊销时间。过去的时间意味着立即吊销。',
    cancelOrder: '将取消该订单或其待处理的重签。',
    placeOrder: '将提交一个订单。',
    destroyCloudKey: '将永久销毁该密钥，之后无法再用其签名。',
    deleteCallbackSettings: '将删除回调配置，不再发送事件。',
    saveCallbackSettings: '将替换回调配置，事件此后发送到新地址。',
    rotateCallbackSecret: '将生成新的签名密钥。接收方须在旧密钥失效前获知新密钥。',
    changeCloudKeyPin: '将更改该密钥的访问控制码，旧码随后失效。',
  },
});

/** Operations with words of their own; the others change something as well. */
const CONSEQUENCES = [
  'reissueCertificate',
  'revokeCertificate',
  'rescheduleRevocation',
  'cancelOrder',
  'placeOrder',
  'destroyCloudKey',
  'deleteCallbackSettings',
  'saveCallbackSettings',
  'rotateCallbackSecret',
  'changeCloudKeyPin',
] as const;

export const askFirst = (operation: Operation, offersDryRun: boolean, decide: (choice: AskedChoice) => void): View =>
  h(AskFirst, { operation, offersDryRun, decide });

interface AskFirstProps {
  readonly operation: Operation;
  readonly offersDryRun: boolean;
  readonly decide: (choice: AskedChoice) => void;
}

function AskFirst({ operation, offersDryRun, decide }: AskFirstProps): View {
  const question = useRef<HTMLDivElement>(null);
  useEffect(() => question.current?.focus(), []);
  const known = CONSEQUENCES.find((one) => one === operation.operationId);
  const choice = (name: AskedChoice, look: string) =>
    button({ type: 'button', class: look, onClick: () => decide(name) }, t(name));
  return div(
    { class: 'problem', role: 'group', tabIndex: -1, ref: question, 'aria-label': t('question') },
    p(t('question'), ' ', t(known ?? 'changes')),
    div({ class: 'actions' }, offersDryRun && choice('dryRun', 'main'), choice('send', 'danger'), choice('leave', '')),
  );
}
