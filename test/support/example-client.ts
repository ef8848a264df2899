// A client that knows nothing but the OpenAPI document: it calls an operation by its operationId, with parameters by name.
import assert from 'node:assert/strict';
import type { Answer, Key, TestApp } from './app.ts';
import { type DocumentedOperation, dereferenced, documentOf, type Json, operationsIn } from './document.ts';

export interface OperationCall {
  readonly key?: Key | undefined;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** Instead of the body, verbatim. */
  readonly raw?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export class ExampleClient {
  readonly app: TestApp;
  readonly document: Json;
  readonly operations: readonly DocumentedOperation[];

  private constructor(app: TestApp, document: Json) {
    this.app = app;
    this.document = dereferenced(document);
    this.operations = operationsIn(this.document);
  }

  static async of(app: TestApp): Promise<ExampleClient> {
    return new ExampleClient(app, await documentOf(app));
  }

  operation(operationId: string): DocumentedOperation {
    const found = this.operations.find((one) => one.operation.operationId === operationId);
    assert.ok(found, `the document has no operation ${operationId}`);
    return found;
  }

  async call(operationId: string, { key, parameters = {}, body, raw, headers = {} }: OperationCall): Promise<Answer> {
    const { method, path, operation } = this.operation(operationId);
    const url = new URL(path, 'http://example');
    const sent: Record<string, string> = { ...headers };
    const declared: readonly { name: string; in: string }[] = operation.parameters ?? [];
    for (const [name, value] of Object.entries(parameters)) {
      const place = declared.find((one) => one.name === name)?.in;
      assert.ok(place, `${operationId} has no parameter ${name}`);
      if (place === 'query') url.searchParams.set(name, String(value));
      if (place === 'header') sent[name] = String(value);
    }
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(parameters[name] ?? 'none')));
    return await this.app.call(method, filled + url.search, {
      key,
      headers: { ...sent, ...(raw !== undefined && { 'Content-Type': 'application/json' }) },
      ...(raw === undefined ? { json: body } : { raw }),
    });
  }
}
