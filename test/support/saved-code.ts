import { randomBytes } from 'node:crypto';
import { Script } from 'node:vm';

/** Saves the compiled code of a script. Returns a function that says whether V8 would reuse it now. */
export function savedCode(): () => boolean {
  // V8 compiles no text twice in one process, so each text is new. With saved code it compares only the length.
  const newText = (): string => `'${randomBytes(8).toString('hex')}'`;
  const cachedData = new Script(newText()).createCachedData();
  return () => new Script(newText(), { cachedData }).cachedDataRejected === false;
}
