// How requests are validated and responses serialized. Each schema is compiled at its first use: compiling all of them
// takes more than half of the start-up time of a process, and a service has several.
import { AjvCompiler } from '@fastify/ajv-compiler';
import compileSerializer from 'fast-json-stringify';
import type { Api } from './api.ts';

type AjvOptions = NonNullable<Parameters<ReturnType<typeof AjvCompiler>>[1]>;
type AjvPlugin = Exclude<NonNullable<AjvOptions['plugins']>[number], readonly unknown[]>;

/** The domain checks these and returns more specific codes. `meaning` is what the text of a parameter stands for. */
const DOCUMENTATION_ONLY = [
  ...['minLength', 'maxLength', 'pattern', 'format', 'enum', 'minimum', 'maximum', 'maxItems', 'minProperties'],
  'meaning',
];

const documentationOnly: AjvPlugin = (ajv) => {
  for (const keyword of DOCUMENTATION_ONLY) ajv.removeKeyword(keyword).addKeyword(keyword);
  return ajv;
};

const buildValidator = AjvCompiler();
const compileValidator = () =>
  buildValidator(
    {},
    {
      // No coercion: "true" is not true, and null must not become 0, which would clear a binding.
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: false },
      plugins: [documentationOnly],
    },
  );

type Serialize = (data: unknown) => string;
/** By schema: all operations share the one of errors. */
const serializers = new WeakMap<object, Serialize>();

function serializerOf(schema: object): Serialize {
  const serialize = serializers.get(schema) ?? compileSerializer(schema);
  serializers.set(schema, serialize);
  return serialize;
}

export function compileSchemasAtFirstUse(app: Pick<Api, 'setValidatorCompiler' | 'setSerializerCompiler'>): void {
  app.setValidatorCompiler((route) => {
    let validate: ReturnType<ReturnType<typeof compileValidator>> | undefined;
    return (data) => {
      validate ??= compileValidator()(route);
      return validate(data) === true || { error: validate.errors ?? [] };
    };
  });
  app.setSerializerCompiler(({ schema }) => {
    let serialize: Serialize | undefined;
    return (data) => {
      serialize ??= serializerOf(schema);
      return serialize(data);
    };
  });
}
