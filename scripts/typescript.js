/** `node --import=./scripts/typescript.js <file>.ts` runs TypeScript. */
import { register } from 'node:module';

register('./typescript-hooks.js', import.meta.url);
// Errors name lines of the source, not of what became of it.
process.setSourceMapsEnabled(true);
