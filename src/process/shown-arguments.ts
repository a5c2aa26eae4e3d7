import { toPrintable } from '../printable.ts';

const SECRET_NAME = /key|token|secret|passw|credential|auth/i;
const MAX_ARGUMENT_LENGTH = 200;

/**
 * Formats arguments for messages as they would be typed in a shell, with `…` for possible credentials, because messages
 * end up in logs.
 */
export function showArguments(args: readonly string[]): string {
  return maskCredentials(args).map(quoteForShell).join(' ');
}

function maskCredentials(args: readonly string[]): readonly string[] {
  return args.map((argument, index) => {
    const before = args[index - 1] ?? '';
    const isValue = before.startsWith('-') && !before.includes('=') && !argument.startsWith('-');
    // The values of these options start with a name, which is shown: `--env NAME=value`, `--header 'Name: value'`.
    const named = before === '--env' ? /^([^=]*=)./s : before === '--header' ? /^([^:]*: *)./s : undefined;
    const name = named?.exec(argument)?.[1];
    if (name !== undefined) return `${name}…`;
    if (isValue && isSecretName(before) && !/^([\w.-]+=)?(env|file):/.test(argument)) return '…';
    const [assigned = '', value] = argument.split(/=(.*)/s);
    if (value !== undefined && !isUrl(argument) && isSecretName(assigned)) return `${assigned}=…`;
    return maskUrl(argument);
  });
}

/** An option whose name ends with `-file` has the path of a file, which is no secret. */
function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) && !name.endsWith('-file');
}

/** Masks user name, password and query, each of which can be a credential. */
function maskUrl(argument: string): string {
  const withoutUser = argument.replace(/\/\/[^/@\s]*@/g, '//…@');
  return withoutUser.replace(/(https?:\/\/[^\s?]*)\?.*/is, '$1?…');
}

function isUrl(argument: string): boolean {
  return /^https?:\/\//i.test(argument);
}

/** Quotes an argument for a shell and truncates a long one: for reading, not for copying. */
export function quoteForShell(argument: string): string {
  return quoteWord(toPrintable(argument, MAX_ARGUMENT_LENGTH));
}

/** Quotes a word for a shell without truncating it. */
export function quoteWord(text: string): string {
  return /^[\w@%+=:,./\u2026-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
