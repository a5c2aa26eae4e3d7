import { ACCESS } from './access.ts';
import { AUTHENTICATION } from './authentication.ts';
import { CREDENTIALS } from './credentials.ts';
import { OAUTH } from './oauth.ts';
import { PRINCIPALS } from './principals.ts';
import type { Protection } from './protection.ts';

export const PROTECTIONS: readonly Protection[] = [
  ...ACCESS,
  ...AUTHENTICATION,
  ...OAUTH,
  ...PRINCIPALS,
  ...CREDENTIALS,
];
