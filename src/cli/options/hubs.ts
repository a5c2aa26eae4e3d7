/** Where clients wait to be called, instead of calling. */
import type { OptionSpec } from './option-spec.ts';

export const HUB_OPTIONS = [
  {
    name: 'dial',
    group: 'hubs',
    describe:
      'Connect to this WebSocket URL and serve whoever is there, also from behind a router; env:NAME and file:PATH keep a URL with a key off the command line',
    kind: 'list',
    placeholder: 'url',
    separator: 'newline',
    verbs: ['serve'],
  },
  {
    name: 'dial-header',
    group: 'hubs',
    describe: `Send this header there; \${NAME} takes a value from the environment`,
    kind: 'list',
    placeholder: 'Name: value',
    separator: 'newline',
    verbs: ['serve'],
  },
  {
    name: 'dial-token',
    group: 'hubs',
    describe: 'Show this token there as a credential',
    kind: 'value',
    placeholder: 'env:NAME|file:PATH',
    verbs: ['serve'],
  },
  {
    name: 'dial-ca',
    group: 'hubs',
    describe: 'Trust these authorities there (PEM file) instead of the built-in ones',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    verbs: ['serve'],
  },
] as const satisfies readonly OptionSpec[];
