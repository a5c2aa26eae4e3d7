/** The value of `BROWSER` for a browser without a window. It is split at spaces, of which the path of the project may have some. */
export const BROWSER = `${process.execPath} test/fixtures/browser.js`;
