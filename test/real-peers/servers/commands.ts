import { fileURLToPath } from 'node:url';

/** Commands of the servers the bridge is put in front of, run with the Node that runs the tests. */
const node = (specifier: string): string[] => [process.execPath, fileURLToPath(import.meta.resolve(specifier))];
const own = (file: string): string[] => [process.execPath, fileURLToPath(new URL(file, import.meta.url))];

export const EVERYTHING = [...node('@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'];

export const filesystem = (root: string): string[] => [
  ...node('@modelcontextprotocol/server-filesystem/dist/index.js'),
  root,
];

export const RECORDER = own('recorder.js');

/** Speaks one era only. */
export const extensions = (era: 'legacy' | 'modern'): string[] => [...own('extensions.js'), era];

export const ASKER = own('asker.js');
