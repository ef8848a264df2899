// The types of the interface, by the names of its document. The compiler checks pages against what the service answers.
import type { components } from '../../../clients/typescript/src/openapi.ts';

type Schemas = components['schemas'];

/** A component of the document: Schema<'Order'>. */
export type Schema<Name extends keyof Schemas> = Schemas[Name];

/** What an answer has in `data`: Data<'OrderListResponse'>. */
export type Data<Name extends keyof Schemas> = Schemas[Name] extends { data: infer Content } ? Content : never;
