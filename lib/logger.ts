/** Fields of a log record. Values must be JSON; an `Error` under `error` is written with its causes. */
export type Fields = Readonly<Record<string, unknown>>;

/** A logger: the message is constant, what varies goes into fields. */
export interface Logger {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** A logger that adds these fields to every record. */
  child(fields: Fields): Logger;
}

/** Says nothing. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};
