import { ACCESS } from './access.ts';
import type { Protection } from './protection.ts';

export const PROTECTIONS: readonly Protection[] = [...ACCESS];
