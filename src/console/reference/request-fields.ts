// The inputs of a request: its parameters, the reader's own values to choose from, and its body as JSON.
import { tags, type View } from '../shell/html.ts';
import { texts } from '../shell/language.ts';
import { consent, field } from '../shell/parts.ts';
import type { Operation, Parameter } from './document.ts';
import type { OwnValue } from './own-values.ts';
import { marked } from './prose.ts';
import { DRY_RUN, type Draft, isDryRun, isSecret } from './request.ts';
import { isBoolean, overall, valuesOf, variantsOf } from './schema.ts';

const { div, input, option, select, textarea } = tags;

const t = texts({
  en: {
    own: 'From your account',
    example: 'Example',
    body: 'Body, JSON',
    dryRun: 'Dry run: say what would happen, and change nothing',
    unset: '(left out)',
  },
  zh: {
    own: '来自您的账户',
    example: '示例',
    body: '内容（JSON）',
    dryRun: '试运行：仅说明将发生什么，不做任何变更',
    unset: '（不发送）',
  },
});

interface RequestFieldsProps {
  readonly operation: Operation;
  readonly draft: Draft;
  readonly change: (changed: Partial<Draft>) => void;
  readonly own: readonly OwnValue[];
  readonly example: {
    readonly names: readonly string[];
    readonly chosen: string;
    readonly choose: (name: string) => void;
  };
}

export function requestFields({ operation, draft, change, own, example }: RequestFieldsProps): View {
  const { parameters = [], requestBody } = operation;
  const set = (name: string) => (value: string) => change({ values: { ...draft.values, [name]: value } });
  const inputOf = (parameter: Parameter) =>
    parameterField(parameter, draft.values[parameter.name] ?? '', set(parameter.name));
  const inPath = parameters.filter((one) => one.in === 'path');
  const optional = parameters.filter((one) => one.in !== 'path' && one.name !== DRY_RUN);
  return div(
    inPath.map((parameter) => [
      own.length > 0 && ownField(own, draft.values[parameter.name] ?? '', set(parameter.name)),
      inputOf(parameter),
    ]),
    div({ class: 'filters' }, optional.map(inputOf)),
    requestBody && [
      example.names.length > 1 &&
        field(t('example'), (attributes) =>
          choices(attributes, { value: example.chosen, options: example.names, choose: example.choose }),
        ),
      field(t('body'), (attributes) =>
        textarea({
          ...attributes,
          rows: Math.min(16, draft.body.split('\n').length + 1),
          spellcheck: false,
          value: draft.body,
          onInput: (event) => change({ body: event.currentTarget.value }),
        }),
      ),
    ],
    parameters.some(({ name }) => name === DRY_RUN) &&
      consent(isDryRun(draft), (given) => set(DRY_RUN)(given ? 'true' : ''), t('dryRun')),
  );
}

const ownField = (own: readonly OwnValue[], value: string, choose: (value: string) => void): View =>
  field(t('own'), (attributes) =>
    select(
      { ...attributes, value, onChange: (event) => choose(event.currentTarget.value) },
      !own.some((one) => one.value === value) && option({ value }, ''),
      own.map((one) => option({ key: one.value, value: one.value }, one.label)),
    ),
  );

interface Choices {
  readonly value: string;
  readonly options: readonly string[];
  readonly choose: (value: string) => void;
}

const choices = (attributes: { readonly id: string }, { value, options, choose }: Choices): View =>
  select(
    { ...attributes, value, onChange: (event) => choose(event.currentTarget.value) },
    options.map((one) => option({ key: one, value: one }, one === '' ? t('unset') : one)),
  );

function parameterField(parameter: Parameter, value: string, set: (value: string) => void): View {
  const { name, schema, required = false, description = overall(schema).description ?? '' } = parameter;
  const words = isBoolean(schema) ? ['true', 'false'] : variantsOf(schema).flatMap(valuesOf).map(String);
  return field(
    name,
    (attributes) =>
      words.length > 0
        ? choices(attributes, { value, options: ['', ...words], choose: set })
        : input({
            ...attributes,
            type: isSecret(parameter) ? 'password' : 'text',
            required,
            autocomplete: 'off',
            spellcheck: false,
            value,
            onInput: (event) => set(event.currentTarget.value),
          }),
    description !== '' && marked(description),
  );
}
