/** Renders the pages that a browser shows when it returns from a login, or when the login fails. Pure functions. */
import { toPrintable } from '../../printable.ts';
import style from './login-page.css';

/**
 * - `done`: the user has granted access, and the token is requested next.
 * - `refused`: the user or the authorization server has refused.
 * - `failed`: the response cannot be trusted.
 * - `ignored`: the response belongs to a login that is over or never began.
 * - `unknown-browser`: the response comes from another browser than the one that began the login.
 * - `contested`: a second browser has opened the address at which the login begins.
 */
export type LoginPage = 'done' | 'refused' | 'failed' | 'ignored' | 'unknown-browser' | 'contested';

/** The text of a page. `text` says what has happened, and `next` what happens next or what the user can do. */
interface PageText {
  readonly status: number;
  readonly tone: 'good' | 'warn' | 'bad';
  readonly title: string;
  readonly text: string;
  readonly next: string;
}

const TRY_AGAIN = 'Close this page and let your program call the server again: it then opens a new page.';

const PAGES: Readonly<Record<LoginPage, PageText>> = {
  done: {
    status: 200,
    tone: 'good',
    title: 'Access allowed',
    text: 'You have allowed mcp-portage to use this server for you.',
    next: 'Close this page and go back to your program. It goes on by itself within a few seconds; if it does not, its log says why.',
  },
  refused: {
    status: 400,
    tone: 'bad',
    title: 'Access refused',
    text: 'You, or the service that you log in at, have refused the access. Nothing was changed.',
    next: `The log of mcp-portage has the reason. ${TRY_AGAIN}`,
  },
  failed: {
    status: 400,
    tone: 'bad',
    title: 'This did not work',
    text: 'The answer that this browser brings cannot be trusted, so nothing of it is used.',
    next: `The log of mcp-portage has the reason. ${TRY_AGAIN}`,
  },
  ignored: {
    status: 400,
    tone: 'warn',
    title: 'Nobody is waiting for this answer',
    text: 'This page belongs to an earlier login, which is over. Nothing was changed.',
    next: 'Close this page. If a newer page to log in is open, go on there; otherwise let your program call the server again.',
  },
  'unknown-browser': {
    status: 403,
    tone: 'warn',
    title: 'This login was begun in another browser',
    text: 'This login was not begun in this browser, so what it brings is not taken. The login goes on waiting.',
    next: 'Finish it in the browser that has opened the address in the log of mcp-portage, or open that address in this browser if none has.',
  },
  contested: {
    status: 410,
    tone: 'bad',
    title: 'This login has ended',
    text: 'This address works once, and another browser has opened it before. Nobody can tell which of them is yours.',
    next: 'Let your program call again, and open the new address in one browser only. If you have opened this one just once, another user of this machine has opened it as well.',
  },
};

/** Limit on the length of names, which come from servers. */
const MAX_NAME_LENGTH = 200;

export interface RenderedPage {
  readonly status: number;
  readonly html: string;
}

/** @param server the name of the server that the login is for; undefined if no login is known */
export function renderLoginPage(page: LoginPage, server: string | undefined): RenderedPage {
  const { status, tone, title, text, next } = PAGES[page];
  const name = server === undefined ? '' : `<dl><dt>Server</dt><dd>${escapeHtml(server)}</dd></dl>\n`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – mcp-portage</title>
<style>${style}</style>
</head>
<body>
<main class="${tone}">
<h1>${title}</h1>
${name}<p>${text}</p>
<p>${next}</p>
<footer>mcp-portage, the program on this machine that connects your program with the server</footer>
</main>
</body>
</html>
`;
  return { status, html };
}

function escapeHtml(text: string): string {
  return toPrintable(text, MAX_NAME_LENGTH).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
