/** What `node` is given before the path of a program in TypeScript. */
export const TYPESCRIPT = `--import=${new URL('../../scripts/typescript.js', import.meta.url).href}`;
