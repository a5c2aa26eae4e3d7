/** Cursors of the aggregate's lists: the next item, by its server, so that a change at another server skips nothing. */
import { createHash } from 'node:crypto';

/** The place where a page begins. */
export interface ListPosition {
  /** The name of the server. */
  readonly server: string;
  /** Items of this server that were shown. */
  readonly shown: number;
}

const CHECK_LENGTH = 8;

/** Encodes a position. A cursor that was shortened, or made up, is recognized by its check digits. */
export function encodeCursor(method: string, { server, shown }: ListPosition): string {
  const text = Buffer.from(JSON.stringify([server, shown])).toString('base64url');
  return `${checkOf(method, text)}${text}`;
}

/** Undefined: the text is no cursor of this list. */
export function decodeCursor(method: string, cursor: string): ListPosition | undefined {
  const text = cursor.slice(CHECK_LENGTH);
  if (cursor.slice(0, CHECK_LENGTH) !== checkOf(method, text)) return undefined;
  try {
    const [server, shown] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    return typeof server === 'string' && Number.isSafeInteger(shown) && (shown as number) >= 0
      ? { server, shown: shown as number }
      : undefined;
  } catch {
    return undefined;
  }
}

function checkOf(method: string, text: string): string {
  return createHash('sha256').update(`${method} ${text}`).digest('base64url').slice(0, CHECK_LENGTH);
}
