import { fileURLToPath } from 'node:url';
import { EVERYTHING as PUBLISHED_EVERYTHING, FILESYSTEM as PUBLISHED_FILESYSTEM } from '../../support/config-bridge.ts';
import { serverProgram } from '../../support/server-program.ts';

/** Commands of the servers the bridge is put in front of, run with the Node that runs the tests. */
const own = (name: string): string[] => [process.execPath, fileURLToPath(new URL(`./${name}.js`, import.meta.url))];

export const EVERYTHING = [process.execPath, PUBLISHED_EVERYTHING, 'stdio'];

export const filesystem = (root: string): string[] => [process.execPath, PUBLISHED_FILESYSTEM, root];

export const RECORDER = own('recorder');

/** Speaks one era only. */
export const extensions = (era: 'legacy' | 'modern'): string[] => [...own('extensions'), era];

export const ASKER = [process.execPath, serverProgram(new URL('./asker.js', import.meta.url))];
