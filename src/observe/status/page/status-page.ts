/** The files of the status page as text, as they are served. The build and the tests put them in here. */
import script from './page.browser.js';
import style from './page.css';
import markup from './page.html';

export const PAGE: Readonly<Record<'html' | 'css' | 'js', string>> = { html: markup, css: style, js: script };
