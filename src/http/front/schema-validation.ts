// Translates Ajv errors into refusals: the field as on the wire and the reason in both languages. Never includes the
// value, which may be a secret.
import type { FastifySchemaValidationError } from 'fastify/types/schema.js';
import { Refusal } from '../../domain/errors.ts';
import type { Localized } from '../../kernel/locale.ts';

export function validationRefusal(errors: readonly FastifySchemaValidationError[]): Refusal {
  const [first] = errors;
  if (!first) return new Refusal('invalid_parameters');
  const field = fieldOf(first);
  return new Refusal('invalid_parameters', { ...(field !== '' && { field }), reason: reasonOf(first, field) });
}

function fieldOf({ instancePath, keyword, params }: FastifySchemaValidationError): string {
  const path = instancePath.split('/').slice(1);
  if (keyword === 'required') path.push(String(params.missingProperty));
  return path.join('.');
}

function reasonOf({ keyword, params, message }: FastifySchemaValidationError, field: string): Localized {
  const name = field === '' ? { en: 'The body', zh: '请求体' } : { en: field, zh: field };
  switch (keyword) {
    case 'required':
      return { en: `${name.en} is missing.`, zh: `缺少 ${name.zh}。` };
    case 'type':
      return { en: `${name.en} must be of type ${params.type}.`, zh: `${name.zh} 的类型必须是 ${params.type}。` };
    default:
      return { en: `${name.en} ${message ?? 'is not valid'}.`, zh: `${name.zh} 无效：${message ?? keyword}。` };
  }
}
