/**
 * Every option, once, as data. From this table come the parsing of the command line and the groups of --help, the
 * environment names, shell completion, the spelling suggestions and the table in the README. What a value means and
 * which are allowed is in parse/value.ts; which go together is in parse/config.ts.
 */
import { LISTENING_OPTIONS } from './listening.ts';
import { LOGIN_OPTIONS } from './login.ts';
import { OUTPUT_OPTIONS } from './output.ts';
import { REMOTE_OPTIONS } from './remote.ts';
import { SERVER_OPTIONS } from './server.ts';
import { SESSIONS_OPTIONS } from './sessions.ts';

export const OPTIONS = [
  ...LISTENING_OPTIONS,
  ...SERVER_OPTIONS,
  ...REMOTE_OPTIONS,
  ...LOGIN_OPTIONS,
  ...SESSIONS_OPTIONS,
  ...OUTPUT_OPTIONS,
] as const;

export type OptionName = (typeof OPTIONS)[number]['name'];
