import test from 'ava';
import { type LoginPage, renderLoginPage } from '../../../src/http/login/login-page.ts';
import { printableLines } from '../../../src/printable.ts';

const STATUSES: Readonly<Record<LoginPage, number>> = {
  done: 200,
  refused: 400,
  failed: 400,
  ignored: 400,
  'unknown-browser': 403,
  contested: 410,
};
const PAGES = Object.keys(STATUSES) as readonly LoginPage[];

test('every page says what has happened, what to do next and which program shows it', (t) => {
  for (const page of PAGES) {
    const { status, html } = renderLoginPage(page, undefined);
    t.is(status, STATUSES[page], page);
    t.regex(html, /<h1>[A-Z][^<]+<\/h1>/, page);
    t.regex(html, /<p>[A-Z][^<]+\.<\/p>\n<p>[A-Z][^<]+\.<\/p>/, page);
    t.regex(html, /<title>[^<]+ – mcp-portage<\/title>/, page);
  }
  const titles = PAGES.map((page) => /<h1>(.*)<\/h1>/.exec(renderLoginPage(page, undefined).html)?.[1]);
  t.is(new Set(titles).size, PAGES.length, 'no two pages are taken for each other');
});

test('every page fits a phone, follows the colors of the system and loads nothing', (t) => {
  for (const page of PAGES) {
    const { html } = renderLoginPage(page, 'https://server.example/mcp');
    t.true(html.includes('<meta name="viewport" content="width=device-width, initial-scale=1">'));
    t.true(html.includes('prefers-color-scheme: dark'));
    t.notRegex(html, /<(script|link|img|iframe|form|a)\b|url\(|@import/);
  }
});

test('the name of a server is shown as text, whatever is in it', (t) => {
  const { html } = renderLoginPage('done', `https://a.example/<script>"'&\u202e\u0000${'x'.repeat(300)}`);
  t.true(html.includes('<dd>https://a.example/&#60;script&#62;&#34;&#39;&#38;xxx'));
  t.is(printableLines(html), html);
  t.notRegex(html, /<script|x{201}/);
});

test('a page about no known login names no server', (t) => {
  t.notRegex(renderLoginPage('ignored', undefined).html, /<dt>/);
});
