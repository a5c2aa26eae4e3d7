/**
 * Finds listening sockets that systemd, or another parent with its protocol, has opened for this process. LISTEN_FDS is
 * their number, and their descriptors start at 3. LISTEN_PID must be the id of this process. [sd_listen_fds(3)]
 */
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import type { BoundAddress, InheritedAddress } from '../../../config/listener.ts';
import { BridgeError } from '../../../errors.ts';
import type { Environment } from '../servers/child-environment.ts';

const FIRST_FD = 3;
/** A larger number is taken for a mistake in LISTEN_FDS. */
const MAX_SOCKETS = 64;

/** Throws ERR_CONFIG_OPTION if a descriptor is not a listening TCP or Unix stream socket. */
export function findInheritedSockets(
  { LISTEN_PID: pid, LISTEN_FDS: count }: Environment,
  self: number = process.pid,
): readonly InheritedAddress[] {
  if (count === undefined || pid !== String(self)) return [];
  const total = /^\d{1,3}$/.test(count) ? Number(count) : Number.NaN;
  if (!(total <= MAX_SOCKETS))
    throw refuse(`LISTEN_FDS: expected a number of sockets up to ${MAX_SOCKETS}; got another text.`);
  return Array.from({ length: total }, (_, index) => describe(FIRST_FD + index));
}

/**
 * Finds the socket's address in /proc. The access checks need it before the first client, and Node reports it only
 * once the socket accepts clients.
 */
function describe(fd: number): InheritedAddress {
  const inode = inodeOf(fd);
  const bound = inode === undefined ? undefined : (findUnix(inode) ?? findTcp(inode, 'tcp') ?? findTcp(inode, 'tcp6'));
  if (bound !== undefined) return { kind: 'inherited', fd, bound };
  throw refuse(
    `The descriptor ${fd} that LISTEN_FDS speaks of is no listening TCP or Unix stream socket that /proc of this system describes. In a unit of systemd, use ListenStream= and Accept=no.`,
  );
}

function inodeOf(fd: number): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1];
  } catch {
    return undefined;
  }
}

/** Columns: Num RefCount Protocol Flags Type St Inode Path. Type 1 is a stream; flag 0x10000 means that it listens. */
function findUnix(inode: string): BoundAddress | undefined {
  for (const line of linesOf('unix')) {
    const [, , , flags, type, , found, ...path] = line.trim().split(/\s+/);
    if (found !== inode || type !== '0001' || flags !== '00010000') continue;
    const name = path.join(' ');
    return { kind: 'socket', path: name, mode: modeOf(name) };
  }
  return undefined;
}

/** A name in the abstract namespace, `@…`, has no file and so no permissions: every user may connect. */
function modeOf(path: string): number {
  try {
    return path.startsWith('/') ? statSync(path).mode & 0o777 : 0o777;
  } catch {
    return 0o777;
  }
}

const LISTENING = '0A';

/** Columns: sl local_address rem_address st …; the tenth is the inode. */
function findTcp(inode: string, table: 'tcp' | 'tcp6'): BoundAddress | undefined {
  for (const line of linesOf(table)) {
    const columns = line.trim().split(/\s+/);
    if (columns[9] !== inode || columns[3] !== LISTENING) continue;
    const [address = '', port = ''] = (columns[1] ?? '').split(':');
    return { kind: 'tcp', host: parseAddress(address), port: Number.parseInt(port, 16) };
  }
  return undefined;
}

/** Parses an address in hexadecimal: words of 32 bits, each in the byte order of the machine. */
function parseAddress(hex: string): string {
  const words = (hex.match(/.{8}/g) ?? []).map((word) => Buffer.from(word, 'hex').reverse());
  const bytes = Buffer.concat(words);
  if (bytes.length === 4) return [...bytes].join('.');
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

function linesOf(table: string): readonly string[] {
  try {
    return readFileSync(`/proc/self/net/${table}`, 'utf8').split('\n');
  } catch {
    return [];
  }
}

function refuse(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_OPTION', message);
}
