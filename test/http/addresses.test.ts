import test from 'ava';
import type { BoundAddress } from '../../src/config/listener.ts';
import { leadsBack, type Reached } from '../../src/http/addresses.ts';

const at = (host: string, port = 9000): BoundAddress => ({ kind: 'tcp', host, port });
const reached = (remote: string, local = remote, port = 9000): Reached => ({ kind: 'tcp', local, remote, port });
const file = (path: string): BoundAddress => ({ kind: 'socket', path, mode: 0o600 });

const OWN: readonly (readonly [string, Reached, BoundAddress])[] = [
  ['the address itself', reached('127.0.0.1'), at('127.0.0.1')],
  ['its form in IPv6', reached('::ffff:127.0.0.1'), at('127.0.0.1')],
  ['localhost', reached('127.0.0.1'), at('localhost')],
  ['localhost in IPv6', reached('::1'), at('localhost')],
  ['every interface, over the loopback', reached('127.0.0.2', '127.0.0.1'), at('0.0.0.0')],
  ['every interface, over an address of this machine', reached('192.0.2.7'), at('0.0.0.0')],
  ['every interface of both families', reached('192.0.2.7'), at('::')],
  ['a name of this machine', reached('192.0.2.7'), at('here.example')],
  ['a socket', { kind: 'socket', path: '/run/a.sock' }, file('/run/a.sock')],
];

const OTHERS: readonly (readonly [string, Reached, BoundAddress])[] = [
  ['another port', reached('127.0.0.1', '127.0.0.1', 9001), at('127.0.0.1')],
  ['another address of this machine', reached('192.0.2.7'), at('127.0.0.1')],
  ['another machine', reached('192.0.2.8', '192.0.2.7'), at('0.0.0.0')],
  ['another machine, by a name', reached('192.0.2.8', '192.0.2.7'), at('here.example')],
  ['another machine, where localhost listens', reached('192.0.2.8', '192.0.2.7'), at('localhost')],
  ['the other family, where only IPv4 listens', reached('::1'), at('0.0.0.0')],
  ['another socket', { kind: 'socket', path: '/run/b.sock' }, file('/run/a.sock')],
  ['a port where a socket listens', reached('127.0.0.1'), file('/run/a.sock')],
];

for (const [what, connection, bound] of OWN) {
  test(`a connection to ${what} leads back to the process that listens there`, (t) => {
    t.true(leadsBack(connection, [at('127.0.0.1', 1), bound]));
  });
}

for (const [what, connection, bound] of OTHERS) {
  test(`a connection to ${what} leads elsewhere`, (t) => {
    t.false(leadsBack(connection, [bound]));
  });
}
