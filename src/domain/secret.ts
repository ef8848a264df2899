// A value that must never be printed. Wrapped at the door, it shows itself as [secret] to template strings, JSON,
// loggers and inspectors alike; only code that says reveal() gets the text.

const MASK = '[secret]';

export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return MASK;
  }
}
