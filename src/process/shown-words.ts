import { toPrintable } from '../printable.ts';

const SECRET_NAME = /key|token|secret|passw|credential|auth/i;
const MAX_WORD_LENGTH = 200;

/** Words as they would be typed in a shell, with `…` for what may be a credential: messages end up in logs. */
export function showWords(words: readonly string[]): string {
  return maskCredentials(words).map(quoteForShell).join(' ');
}

function maskCredentials(words: readonly string[]): readonly string[] {
  return words.map((word, index) => {
    const before = words[index - 1] ?? '';
    const isValue = before.startsWith('-') && !before.includes('=') && !word.startsWith('-');
    // The values of these options begin with a name, which is shown: `--env NAME=value`, `--header 'Name: value'`.
    const named = before === '--env' ? /^(\w+=)./s : before === '--header' ? /^([\w-]+: *)./s : undefined;
    const name = named?.exec(word)?.[1];
    if (name !== undefined) return `${name}…`;
    if (isValue && isSecretName(before) && !/^([\w.-]+=)?(env|file):/.test(word)) return '…';
    const [assigned = '', value] = word.split(/=(.*)/s);
    if (value !== undefined && !isUrl(word) && isSecretName(assigned)) return `${assigned}=…`;
    return maskUrl(word);
  });
}

/** The name of a file with a secret in it is none. */
function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) && !name.endsWith('-file');
}

/** A user name, password or query can be a credential. */
function maskUrl(word: string): string {
  const withoutUser = word.replace(/\/\/[^/@\s]*@/g, '//…@');
  return isUrl(word) ? withoutUser.replace(/\?.*$/s, '?…') : withoutUser;
}

function isUrl(word: string): boolean {
  return /^https?:\/\//i.test(word);
}

export function quoteForShell(word: string): string {
  const text = toPrintable(word, MAX_WORD_LENGTH);
  return /^[\w@%+=:,./…-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
