import { fileURLToPath } from 'node:url';

/** Commands of the servers the bridge is put in front of, run with the Node that runs the tests. */
const node = (url: string): string[] => [process.execPath, fileURLToPath(url)];
const published = (specifier: string): string[] => node(import.meta.resolve(specifier));
const own = (name: string): string[] => node(new URL(`./${name}.js`, import.meta.url).href);

export const EVERYTHING = [...published('@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'];

export const filesystem = (root: string): string[] => [
  ...published('@modelcontextprotocol/server-filesystem/dist/index.js'),
  root,
];

export const RECORDER = own('recorder');

/** Speaks one era only. */
export const extensions = (era: 'legacy' | 'modern'): string[] => [...own('extensions'), era];

export const ASKER = own('asker');
