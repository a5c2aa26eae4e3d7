/** For containers: exits with 0 when the bridge in this container answers, with 1 otherwise. Reads its environment. */
import http from 'node:http';
import https from 'node:https';

const TIMEOUT_MS = 4000;

const { MCP_PORTAGE_HOST: host = '127.0.0.1', MCP_PORTAGE_PORT: port, MCP_PORTAGE_TLS_CERT: cert } = process.env;
const options = {
  host: host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host,
  port: Number(port) || 8000,
  path: '/healthz',
  timeout: TIMEOUT_MS,
  // The certificate is made for the name clients use, not for this address; nothing secret is sent.
  rejectUnauthorized: false,
};
const request = (cert ? https : http).get(options, (response) => {
  response.resume();
  process.exitCode = response.statusCode === 200 ? 0 : 1;
});
request.on('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
request.on('error', (error) => {
  console.error(error.message);
  process.exitCode = 1;
});
