/** The kinds of values that options have, and how each is read from the words of a user. */

/** The outcome of reading one value. */
export type Parsed<T> =
  /** `doubt` completes a warning about a value that was probably meant otherwise, after its place. */
  | { readonly ok: true; readonly value: T; readonly doubt?: string }
  /**
   * Describes the expected form, and if it is clear, the right form of what was written. The reader, which knows the option
   * and its place, makes an error of it.
   */
  | { readonly ok: false; readonly expected: string; readonly meant?: string | undefined };

/** A whole explanation without a value in it, for a mistake that "expected …; got …" would not explain. */
export interface Explained {
  readonly ok: false;
  readonly problem: string;
}

/** The place where a text was written, as far as the meaning of the text depends on it. */
export interface ReadingContext {
  /** Makes a path absolute: relative to the current folder, or in a file to the folder of its workspace. */
  readonly resolvePath: (path: string) => string;
  readonly platform: NodeJS.Platform;
  /** The variables for `${NAME}` in a header; `expanded` for a text in which none are replaced anymore. */
  readonly variables: Readonly<Record<string, string | undefined>> | 'expanded';
  /** Spells the name of another option as it is written in that place: `--max-sessions` or `maxSessions`. */
  readonly nameOf: (option: string) => string;
}

/**
 * A kind of value. `read` is pure and takes what a user writes on the command line, in a variable, or in a file as a
 * text or a number. Help, completion, schema and the types of the library describe the kind by the other members.
 */
export interface ValueType<T> {
  /** A name for the value, such as `<port>`. */
  readonly placeholder: string;
  readonly read: (text: string, context: ReadingContext) => Parsed<T> | Explained;
  readonly choices?: readonly string[];
  /** The kind of path that shells complete. */
  readonly completes?: 'file' | 'directory';
  /** The type in TypeScript. Absent: the choices, or a string. */
  readonly typescript?: string;
  /** True if a value may be or hold a credential. Messages never show it. */
  readonly isSecret?: true;
  /** The separator of a list's values in a variable. Absent: a comma. */
  readonly separator?: '\n';
  /** Reads one member of an object, in which files and programs may write a list of `name=value`. */
  readonly readMember?: (name: string, text: string) => Parsed<T>;
}
