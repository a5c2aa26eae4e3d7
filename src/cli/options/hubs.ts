/** Options for hubs: WebSocket servers that the bridge connects to in order to serve the clients there. */
import type { OptionSpec } from './option-spec.ts';

export const HUB_OPTIONS = [
  {
    name: 'dial',
    group: 'hubs',
    describe:
      'Connect to this WebSocket URL and serve the clients there, as from behind a router; env:NAME or file:path holds a URL that contains a key',
    kind: 'list',
    placeholder: 'url',
    separator: 'newline',
    verbs: ['serve'],
  },
  {
    name: 'dial-header',
    group: 'hubs',
    describe: `Send this header to the hub; \${NAME} takes a value from the environment`,
    kind: 'list',
    placeholder: 'Name: value',
    separator: 'newline',
    verbs: ['serve'],
  },
  {
    name: 'dial-token',
    group: 'hubs',
    describe: 'Send the bearer token in env:NAME or file:path to the hub',
    kind: 'value',
    placeholder: 'source',
    verbs: ['serve'],
  },
  {
    name: 'dial-ca',
    group: 'hubs',
    describe: 'Trust these certificate authorities of the hub (PEM file) instead of the built-in ones',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    verbs: ['serve'],
  },
] as const satisfies readonly OptionSpec[];
