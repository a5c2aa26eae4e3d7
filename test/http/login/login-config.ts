import type { LoginConfig } from '../../../src/config/remote.ts';

/** A login as it is without any option. */
export const NO_OPTIONS: Omit<LoginConfig, 'stateDirectory'> = {
  grant: 'authorization-code',
  assertion: undefined,
  stored: 'use',
  client: undefined,
  clientMetadataUrl: undefined,
  issuer: undefined,
  tokenEndpoint: undefined,
  authMethod: undefined,
  assumesPkce: false,
  scopes: [],
  resource: { kind: 'server' },
  token: 'access',
  extraParameters: new Map(),
  callback: new URL('http://127.0.0.1:0/callback'),
  browser: undefined,
};
