import type { Protection } from './protection.ts';

const POLICY = { file: 'src/http/access-policy.ts', tests: ['test/http/access-policy.test.ts'] } as const;

/** Who may come in. */
export const ACCESS: readonly Protection[] = [
  { promise: 'a Host of another name is refused', ...POLICY, code: '!this.#isKnownHost(host)', without: 'false' },
  {
    promise: 'an Origin that was not named is refused',
    ...POLICY,
    code: 'origin !== undefined && !this.#isAllowedOrigin(origin)',
    without: 'false',
  },
];
