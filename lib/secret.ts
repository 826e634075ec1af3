const inspect = Symbol.for("Deno.customInspect");
const nodeInspect = Symbol.for("nodejs.util.inspect.custom");

/** A value that no log, template or JSON shows. Read it with {@link Secret.reveal}, where it is used. */
export class Secret {
  readonly #value: string;

  /** Wraps `value`. */
  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. */
  reveal(): string {
    return this.#value;
  }

  /** Always `[secret]`. */
  toString(): string {
    return "[secret]";
  }

  /** Always `[secret]`. */
  toJSON(): string {
    return "[secret]";
  }

  [inspect](): string {
    return "[secret]";
  }

  [nodeInspect](): string {
    return "[secret]";
  }
}
