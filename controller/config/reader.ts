import { Secret } from "../../lib/secret.ts";
import { type VariableName, variableOf } from "./variables.ts";

/** One wrong variable. Holds no secret's value. */
export interface Fault {
  /** The variable, or several that are missing together, separated by `, `. */
  readonly variable: string;
  /** What was given, for people: quoted and cut, `nothing`, or `a secret of N bytes`. */
  readonly given: string;
  readonly allowed: string;
  /** One sentence; several of them are fixed texts. */
  readonly message: string;
}

/** What a variable may hold. */
export interface Rule<T> {
  /** For people, after "must be". */
  readonly allowed: string;
  /** Undefined for what is not allowed. */
  readonly parse: (text: string) => T | undefined;
  /** Fixed text instead of `<variable> must be <allowed>`. */
  readonly message?: string;
}

/** Reads variables and collects what is wrong. */
export interface Reader {
  /** The value without blanks around it; null when unset or empty. */
  text(name: VariableName): string | null;
  /** A secret, from the variable or its file; by rule, if there is one. */
  secret(name: VariableName, rule?: Rule<string>): Secret | null;
  /** The file that a secret comes from; null when it comes from the variable, or is not set. */
  secretFile(name: VariableName): string | null;
  /** A value by rule, or null when unset (or wrong: then there is a fault). */
  optional<T>(name: VariableName, rule: Rule<T>): T | null;
  /** A value by rule; the default, as text, where nothing (or something wrong) was given. */
  value<T>(name: VariableName, fallback: string, rule: Rule<T>): T;
  /** True if something was given, right or wrong. */
  given(name: VariableName): boolean;
  /** Adds a fault. */
  fault(name: VariableName, allowed: string, message?: string): void;
  /** Adds a fault for variables that are missing together. */
  missing(names: readonly VariableName[], allowed: string, message: string): void;
  readonly faults: readonly Fault[];
  readonly effective: Readonly<Record<string, string | null>>;
}

const SHOWN = 120;
/** What `JSON.stringify` leaves as it is though a terminal obeys it. */
const UNPRINTABLE = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Quotes a value for people: one line, cut, without what stands before an `@` or after a `?`. */
export function quoted(value: string): string {
  const at = value.lastIndexOf("@");
  const slashes = value.indexOf("//");
  const masked = at > slashes && slashes >= 0
    ? `${value.slice(0, slashes + 2)}***${value.slice(at)}`
    : value;
  const query = masked.indexOf("?");
  const plain = query < 0 ? masked : `${masked.slice(0, query)}?***`;
  const cut = plain.length > SHOWN ? `${plain.slice(0, SHOWN)}...` : plain;
  return JSON.stringify(cut).replace(UNPRINTABLE, "?");
}

/** Makes a {@link Reader}. `readFile` throws when a file cannot be read. */
export function createReader(
  env: Readonly<Record<string, string | undefined>>,
  readFile: (path: string) => string,
): Reader {
  const faults: Fault[] = [];
  const effective: Record<string, string | null> = {};
  const values = new Map<VariableName, string | null>();

  const raw = (name: string) => {
    const value = env[name]?.trim();
    return value === undefined || value === "" ? null : value;
  };

  const fromFile = (name: VariableName, path: string): string | null => {
    const variable = `${name}_FILE`;
    const wrong = (message: string) => {
      // Who puts the secret itself here must not find it in the log.
      const given = /^\.{0,2}\//.test(path) ? quoted(path) : "something that is no path";
      faults.push({ variable, given, allowed: "the path of a readable file", message });
      return null;
    };
    if (raw(name) !== null) {
      return wrong(`${name} and ${variable} are both set: remove one of them`);
    }
    try {
      const text = readFile(path).trim();
      return text === "" ? wrong(`${variable} names an empty file`) : text;
    } catch (error) {
      const why = error instanceof Error ? error.name : "unknown error";
      return wrong(`${variable} names a file that cannot be read (${why})`);
    }
  };

  const text = (name: VariableName): string | null => {
    const known = values.get(name);
    if (known !== undefined) return known;
    const { secret, file } = variableOf(name);
    const path = secret || file ? raw(`${name}_FILE`) : null;
    const value = path === null ? raw(name) : fromFile(name, path);
    values.set(name, value);
    effective[name] = value === null ? null : secret ? "[secret]" : value;
    return value;
  };

  const givenText = (name: VariableName) => {
    const value = text(name);
    if (value === null) return "nothing";
    if (!variableOf(name).secret) return quoted(value);
    return `a secret of ${new TextEncoder().encode(value).length} bytes`;
  };

  const reader: Reader = {
    text,
    secret(name, rule) {
      const value = rule === undefined ? text(name) : reader.optional(name, rule);
      return value === null ? null : new Secret(value);
    },
    secretFile: (name) => text(name) === null ? null : raw(`${name}_FILE`),
    optional(name, { allowed, parse, message }) {
      const value = text(name);
      if (value === null) return null;
      const parsed = parse(value);
      if (parsed !== undefined) return parsed;
      reader.fault(name, allowed, message);
      return null;
    },
    value(name, fallback, rule) {
      const value = reader.optional(name, rule);
      if (value !== null) return value;
      if (text(name) === null) effective[name] = fallback;
      const parsed = rule.parse(fallback);
      if (parsed === undefined) throw new TypeError(`Cannot parse the default of "${name}"`);
      return parsed;
    },
    given: (name) => raw(name) !== null || raw(`${name}_FILE`) !== null,
    fault(name, allowed, message = `${name} must be ${allowed}`) {
      faults.push({ variable: name, given: givenText(name), allowed, message });
    },
    missing(names, allowed, message) {
      faults.push({ variable: names.join(", "), given: "nothing", allowed, message });
    },
    faults,
    effective,
  };
  return reader;
}
