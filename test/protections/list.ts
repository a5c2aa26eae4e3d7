import { ACCESS } from './access.ts';
import { AUTHENTICATION } from './authentication.ts';
import { CREDENTIALS } from './credentials.ts';
import { HANGS } from './hangs.ts';
import { KEPT } from './kept.ts';
import { LIMITS } from './limits.ts';
import { LOGIN } from './login.ts';
import { OAUTH } from './oauth.ts';
import { PRINCIPALS } from './principals.ts';
import { PROCESSES } from './processes.ts';
import type { Protection } from './protection.ts';
import { ROUTING } from './routing.ts';
import { SHARED } from './shared.ts';
import { UPSTREAM } from './upstream.ts';
import { WIRE } from './wire.ts';

export const PROTECTIONS: readonly Protection[] = [
  ...ACCESS,
  ...AUTHENTICATION,
  ...OAUTH,
  ...PRINCIPALS,
  ...CREDENTIALS,
  ...LIMITS,
  ...KEPT,
  ...WIRE,
  ...ROUTING,
  ...SHARED,
  ...UPSTREAM,
  ...LOGIN,
  ...PROCESSES,
  ...HANGS,
];
