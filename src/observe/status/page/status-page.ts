/** The files of the status page as text, as they are served. The build and the tests put them in here. */
import messagesScript from './messages.browser.js';
import messagesStyle from './messages.css';
import messagesMarkup from './messages.html';
import script from './page.browser.js';
import style from './page.css';
import markup from './page.html';

type PageFiles = Readonly<Record<'html' | 'css' | 'js', string>>;

/** The place in the markup where the messages are. */
const PLACE_OF_MESSAGES = '    <!-- messages -->\n';

export const PAGE: PageFiles = { html: markup.replace(PLACE_OF_MESSAGES, ''), css: style, js: script };

/** The page of a bridge that also shows messages. Their script uses what that of the page declares. */
export const PAGE_WITH_MESSAGES: PageFiles = {
  html: markup.replace(PLACE_OF_MESSAGES, () => messagesMarkup),
  css: style + messagesStyle,
  js: `${script}\n${messagesScript}`,
};
