/** Options for several replicas behind one address. */
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
    describe: 'URL at which the other replicas reach this one, such as http://10.0.0.5:8000',
    kind: 'value',
    placeholder: 'url',
    verbs: ['serve'],
  },
  {
    name: 'cluster-key',
    group: 'cluster',
    describe: 'Where the secret of all replicas is; with several lines, the first key encrypts and all decrypt',
    kind: 'value',
    placeholder: 'env:NAME|file:PATH',
    verbs: ['serve'],
  },
  {
    name: 'store-prefix',
    group: 'cluster',
    describe: 'Prefix of every key in Redis, so that other programs can share it',
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
    describe: 'Silence of a replica after which others take over its sessions with remote servers',
    kind: 'value',
    placeholder: 'duration',
    default: '15s',
    verbs: ['serve'],
  },
  {
    name: 'cluster-limits',
    group: 'cluster',
    describe:
      'Limit sessions, calls of a caller without a session, and processes for all replicas together instead of for each',
    kind: 'flag',
    default: 'false',
    verbs: ['serve'],
  },
] as const satisfies readonly OptionSpec[];
