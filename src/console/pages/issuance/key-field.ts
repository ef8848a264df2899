// Where the key comes from: a CSR that is pasted, dropped as a file or made here, or a key that the service holds.
import { h } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { KEY_CHOICES, type KeyChoice, type MadeKey, makeCsr } from '../../pki/csr.ts';
import { download, fileName } from '../../shell/download.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { field, problem } from '../../shell/parts.ts';
import { useAction } from '../../shell/resource.ts';
import type { Schema } from '../../shell/wire.ts';

const { button, div, input, label, option, p, select, small, span, textarea } = tags;

const t = texts({
  en: {
    csr: 'Certificate signing request',
    csrHint: 'Paste it, drop a file on the field, or make one here. Only the public key is taken from it.',
    optional: 'Left empty, the key of the current certificate is certified again.',
    choose: 'Choose a file',
    make: 'Make a new key',
    kind: 'Kind of key',
    making: 'Making a key…',
    made: 'The key was made in this browser, and exists in this page only. Save it now: nothing is sent before.',
    saved: 'The private key was saved as a file. Keep it secret, and put it on your server with the certificate.',
    save: 'Save the private key',
    insecure: 'Browsers make keys on secure pages only. Open this page over HTTPS, or paste a request.',
    tooLarge: 'This file is too large for a certificate signing request.',
    isPrivate:
      'This is a private key. It was not taken, and was sent nowhere: give the certificate signing request instead.',
    p256: 'ECDSA P-256 (recommended)',
    rsa2048: 'RSA 2048',
    rsa3072: 'RSA 3072',
    rsa4096: 'RSA 4096',
  },
  zh: {
    csr: '证书签名请求（CSR）',
    csrHint: '可粘贴、将文件拖入输入框，或在此生成。仅使用其中的公钥。',
    optional: '留空则沿用当前证书的密钥。',
    choose: '选择文件',
    make: '生成新密钥',
    kind: '密钥类型',
    making: '正在生成密钥…',
    made: '密钥已在浏览器中生成，仅存在于本页面。请立即保存，保存前不会提交。',
    saved: '私钥已保存为文件。请妥善保管，并与证书一起部署到服务器。',
    save: '保存私钥',
    insecure: '浏览器仅在安全页面生成密钥。请通过 HTTPS 打开本页，或粘贴 CSR。',
    tooLarge: '文件过大，不是有效的证书签名请求。',
    isPrivate: '这是私钥，未被采用，也未发送。请提供证书签名请求（CSR）。',
    p256: 'ECDSA P-256（推荐）',
    rsa2048: 'RSA 2048',
    rsa3072: 'RSA 3072',
    rsa4096: 'RSA 4096',
  },
});

const MAX_FILE_BYTES = 64 * 1024;
/** Of any kind, also in a file beside other things. What the field has is sent while typing, as a dry run. */
const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY/;

interface Props {
  readonly csr: string;
  readonly names: readonly string[];
  readonly isOptional: boolean;
  /** What the product certifies. */
  readonly rules: readonly Schema<'KeyRule'>[];
  readonly onChange: (csr: string) => void;
  /** Whether a key was made here that is on no disk yet. */
  readonly onUnsaved: (isUnsaved: boolean) => void;
}

export function KeyField({ csr, names, isOptional, rules, onChange, onUnsaved }: Props): View {
  const choices = KEY_CHOICES.filter((one) => isServed(one, rules));
  const [made, setMade] = useState<MadeKey | undefined>();
  const [isSaved, setSaved] = useState(false);
  const [isPrivate, setPrivate] = useState(false);
  const [chosen, setChosen] = useState<KeyChoice>('p256');
  const kind = choices.includes(chosen) ? chosen : choices[0];
  const make = useAction(async () => {
    if (kind === undefined) return;
    const key = await makeCsr(kind, names);
    setMade(key);
    setSaved(false);
    onUnsaved(true);
    onChange(key.csr);
  });
  const leaving = useRef({ isUnsaved: false, onChange, onUnsaved });
  leaving.current = { isUnsaved: made !== undefined && !isSaved, onChange, onUnsaved };
  // A key that no disk has goes with the field, and so must its signing request.
  useEffect(
    () => () => {
      const { current } = leaving;
      if (!current.isUnsaved) return;
      current.onChange('');
      current.onUnsaved(false);
    },
    [],
  );
  const read = useAction(async (file: File) => {
    if (file.size > MAX_FILE_BYTES) throw new TypeError(t('tooLarge'));
    change(await file.text());
  });
  const change = (text: string) => {
    setPrivate(PRIVATE_KEY.test(text));
    if (PRIVATE_KEY.test(text)) return;
    if (made && text !== made.csr) {
      setMade(undefined);
      onUnsaved(false);
    }
    onChange(text);
  };
  const save = () => {
    if (!made) return;
    download(fileName(names[0] ?? 'private', 'key.pem'), made.privateKey);
    setSaved(true);
    onUnsaved(false);
  };
  return div(
    field(
      t('csr'),
      (attributes) =>
        textarea({
          ...attributes,
          value: csr,
          rows: 6,
          spellcheck: false,
          placeholder: '-----BEGIN CERTIFICATE REQUEST-----',
          onInput: (event) => {
            const field = event.currentTarget;
            change(field.value);
            if (PRIVATE_KEY.test(field.value)) field.value = csr;
          },
          onDragOver: (event) => event.preventDefault(),
          onDrop: (event) => {
            const file = event.dataTransfer?.files[0];
            if (!file) return;
            event.preventDefault();
            read.run(file);
          },
        }),
      [t('csrHint'), isOptional && [' ', t('optional')]],
    ),
    div(
      { class: 'buttons' },
      label(
        { class: 'button small' },
        input({
          type: 'file',
          class: 'heard',
          accept: '.csr,.pem,.req,.txt',
          onChange: (event) => {
            const file = event.currentTarget.files?.[0];
            if (file) read.run(file);
            event.currentTarget.value = '';
          },
        }),
        t('choose'),
      ),
      kind && [
        h(KindChoice, { kind, choices, onChange: setChosen }),
        button(
          { type: 'button', disabled: make.isRunning || !globalThis.isSecureContext, onClick: () => make.run() },
          t('make'),
        ),
      ],
    ),
    kind && !globalThis.isSecureContext && small(t('insecure')),
    make.isRunning && p({ class: 'quiet', role: 'status' }, t('making')),
    make.error && problem(make.error),
    isPrivate && p({ class: 'problem', role: 'alert' }, t('isPrivate')),
    read.error && p({ class: 'problem', role: 'alert' }, read.error.message),
    made &&
      div(
        { class: 'note', role: 'status' },
        p(t(isSaved ? 'saved' : 'made')),
        button({ type: 'button', class: isSaved ? '' : 'main', onClick: save }, t('save')),
      ),
  );
}

const RSA_BITS: Readonly<Partial<Record<KeyChoice, number>>> = { rsa2048: 2048, rsa3072: 3072, rsa4096: 4096 };
const isServed = (choice: KeyChoice, rules: readonly Schema<'KeyRule'>[]): boolean => {
  const bits = RSA_BITS[choice];
  return rules.some(({ type, min_bits, max_bits }) =>
    bits === undefined ? type === choice : type === 'rsa' && min_bits <= bits && bits <= max_bits,
  );
};

interface ChoiceProps {
  readonly kind: KeyChoice;
  readonly choices: readonly KeyChoice[];
  readonly onChange: (kind: KeyChoice) => void;
}

function KindChoice({ kind, choices, onChange }: ChoiceProps): View {
  return label(
    span({ class: 'heard' }, t('kind')),
    select(
      {
        value: kind,
        onChange: (event) => onChange(choices.find((one) => one === event.currentTarget.value) ?? kind),
      },
      choices.map((one) => option({ key: one, value: one }, t(one))),
    ),
  );
}
