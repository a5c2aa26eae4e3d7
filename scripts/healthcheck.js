/**
 * For containers: exits with 0 when the bridge in this container answers, with 1 otherwise. Where it listens is what its
 * command line says, else the environment, which a health check shares with it.
 *
 * Usage: node healthcheck.js [pid]; 1 by default, which is the entrypoint with all of its arguments.
 */
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

const TIMEOUT_MS = 4000;

const words = readCommandLine(process.argv[2] ?? '1');
const socket = settingOf('socket');
// Beside a socket there is a port only where the command line asks for one.
const hasPort = words.some((word) => /^--(port|host)(=|$)/.test(word));
const socketPath = socket !== undefined && !hasPort ? socket.split(',')[0] : undefined;
const host = settingOf('host') ?? '127.0.0.1';
const options = {
  host: host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host,
  port: Number(settingOf('port')) || 8000,
  path: '/healthz',
  ...(socketPath !== undefined && { socketPath: socketPath.replace(/^unix:\/\//i, '') }),
  timeout: TIMEOUT_MS,
  // The certificate is made for the name clients use, not for this address; nothing secret is sent.
  rejectUnauthorized: false,
};
const request = (settingOf('tls-cert') && socketPath === undefined ? https : http).get(options, (response) => {
  response.resume();
  process.exitCode = response.statusCode === 200 ? 0 : 1;
});
request.on('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
request.on('error', (error) => {
  console.error(error.message);
  process.exitCode = 1;
});

/**
 * The options of the bridge: what follows its program up to the command of the server. None where the process cannot be
 * looked at, or is another program.
 *
 * @param {string} pid
 */
function readCommandLine(pid) {
  try {
    const all = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    const program = all.findIndex((word) => /(^|\/)mcp-portage(\.js)?$/.test(word));
    const own = program < 0 ? [] : all.slice(program + 1);
    const end = own.indexOf('--');
    return end < 0 ? own : own.slice(0, end);
  } catch {
    return [];
  }
}

/**
 * The last one counts, and the command line before the environment.
 *
 * @param {string} name
 */
function settingOf(name) {
  const at = words.findLastIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`));
  const word = words[at];
  if (word === undefined) return process.env[`MCP_PORTAGE_${name.toUpperCase().replace('-', '_')}`];
  return word === `--${name}` ? words[at + 1] : word.slice(`--${name}=`.length);
}
