/** Files that are put into the program as text: what a browser is sent, and what the help quotes. */
export const TEXT_LOADERS = { '.html': 'text', '.css': 'text', '.browser.js': 'text', '.md': 'text' };

export function isTextFile(url) {
  return Object.keys(TEXT_LOADERS).some((ending) => url.endsWith(ending));
}
