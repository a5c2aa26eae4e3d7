/** Several replicas behind one address. */
import type { OptionSpec } from './option-spec.ts';

export const CLUSTER_OPTIONS = [
  {
    name: 'store',
    group: 'cluster',
    describe:
      'Share sessions with other replicas through this Redis: redis://, rediss://, redis+sentinel:// or redis+cluster:// and its address',
    kind: 'value',
    placeholder: 'url',
    verbs: ['serve'],
  },
  {
    name: 'advertise',
    group: 'cluster',
    describe: 'Where the other replicas reach this one, like http://10.0.0.5:8000',
    kind: 'value',
    placeholder: 'url',
    verbs: ['serve'],
  },
  {
    name: 'cluster-key',
    group: 'cluster',
    describe:
      'The secret that all replicas share: where it is, with one key a line, of which the first seals and all open',
    kind: 'value',
    placeholder: 'env:NAME|file:PATH',
    verbs: ['serve'],
  },
  {
    name: 'store-prefix',
    group: 'cluster',
    describe: 'Before the name of each key in Redis, so that others can use it, too',
    kind: 'value',
    placeholder: 'text',
    default: 'mcp-portage:',
    verbs: ['serve'],
  },
  {
    name: 'store-ca',
    group: 'cluster',
    describe: 'Trust these certificate authorities for Redis over TLS (PEM file) instead of the built-in ones',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    verbs: ['serve'],
  },
  {
    name: 'store-client-cert',
    group: 'cluster',
    describe: 'Client certificate to present to Redis (PEM file)',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    verbs: ['serve'],
  },
  {
    name: 'store-client-key',
    group: 'cluster',
    describe: 'Private key of that certificate (PEM file)',
    kind: 'value',
    placeholder: 'file',
    completes: 'file',
    verbs: ['serve'],
  },
  {
    name: 'lease',
    group: 'cluster',
    describe: 'After this much silence of a replica the others take over its sessions with remote servers',
    kind: 'value',
    placeholder: 'duration',
    default: '15s',
    verbs: ['serve'],
  },
  {
    name: 'cluster-limits',
    group: 'cluster',
    describe:
      'Sessions, calls of a caller without a session, and processes are limited for all replicas together instead of for each',
    kind: 'flag',
    default: 'false',
    verbs: ['serve'],
  },
] as const satisfies readonly OptionSpec[];
