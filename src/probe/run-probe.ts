import type { LoginConfig, RemoteConfig } from '../config/remote.ts';
import { AGGREGATE_NAME, type ServerConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { MAY_BE_FRAMED, toBridgeError } from '../errors.ts';
import type { Credentials } from '../http/client/credentials.ts';
import { handshakeUrlOf, isWebSocketUrl } from '../http/websocket/url.ts';
import type { Connector } from '../upstream/connection.ts';
import { createHttpClient } from '../upstream/detect/url-sessions.ts';
import { nameTarget } from '../upstream/name-target.ts';
import { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { createStdioConnector, type StdioConnectorOptions } from '../upstream/stdio/connector.ts';
import { VERSION } from '../version.ts';
import { adviseClients, showTarget } from './clients.ts';
import { Findings, type ProbeConfig, StepLog } from './findings.ts';
import { ConnectionProbe } from './probe-connection.ts';
import { UrlProbe } from './probe-url.ts';
import type { ProbeConclusion, ProbeReport } from './report.ts';

/**
 * Probes a server. Everything it opens or starts is closed, which may take a few seconds beyond the time limit.
 * Resolves with a report whatever the server does.
 *
 * @throws BridgeError ERR_CONFIG_* for a certificate, proxy or pseudo-terminal that cannot be used
 */
export async function runProbe(target: ServerConfig['target'], config: ProbeConfig, deps: Deps): Promise<ProbeReport> {
  const startedMs = deps.clock.now();
  const findings = new Findings(new StepLog(deps.clock, config.waiting));
  const controller = new AbortController();
  const timeUp = new Error('the time is up');
  const interrupted = new Error('interrupted');
  const abortAfter = (ms: number) => deps.clock.after(ms, () => controller.abort(timeUp));
  let cancel = abortAfter(config.timeoutMs);
  const allowMore = (ms: number): void => {
    cancel();
    cancel = abortAfter(startedMs + config.timeoutMs + ms - deps.clock.now());
  };
  const interrupt = (): void => controller.abort(interrupted);
  config.signal?.addEventListener('abort', interrupt, { once: true });
  // The clock's timers and idle connections do not keep the process alive, but the report must still be printed.
  const hold = setInterval(() => {}, HOLD_MS);
  let probe: UrlProbe | ConnectionProbe | undefined;
  try {
    probe = await createProbe(target, config, { findings, deps, signal: controller.signal, allowMore });
    await probe.run();
  } catch (thrown) {
    if (thrown === timeUp) {
      const pending = findings.steps.giveUp();
      const during = pending === undefined ? '' : ` while waiting for ${pending}`;
      const isSilent = target.kind === 'command' && findings.offers.every(({ works }) => !works);
      findings.problem(
        `The time limit of ${showTime(config.timeoutMs)} was reached${during}.${isSilent ? SILENCE : ''}`,
      );
    } else if (thrown === interrupted) {
      findings.steps.giveUp();
      findings.problem('It was interrupted; there may be more to find.');
    } else {
      const error = toBridgeError(thrown);
      if (error.code.startsWith('ERR_CONFIG') || error.code === 'ERR_INTERNAL') throw error;
      findings.failure(error);
    }
  } finally {
    cancel();
    config.signal?.removeEventListener('abort', interrupt);
    await probe?.close();
    clearInterval(hold);
  }
  return conclude(target, config, findings, deps.clock.now() - startedMs);
}

const HOLD_MS = 60_000;

const SILENCE = ` The server runs but has not answered. It may be slow to start (allow more with --timeout), or may not speak MCP on stdin and stdout. ${MAY_BE_FRAMED} A server that listens on a port is probed by its URL.`;

function showTime(ms: number): string {
  return ms < 10_000 ? `${ms} ms` : `${Math.round(ms / 1000)} s`;
}

interface ProbeContext {
  readonly findings: Findings;
  readonly deps: Deps;
  readonly signal: AbortSignal;
  readonly allowMore: (ms: number) => void;
}

async function createProbe(
  target: ServerConfig['target'],
  config: ProbeConfig,
  context: ProbeContext,
): Promise<UrlProbe | ConnectionProbe> {
  const { protocol, remote, child, limits, timeoutMs, replaySpeed, aggregate } = config;
  if (target.kind === 'aggregate') {
    if (aggregate === undefined) throw new Error('the aggregate is probed by the command that connects to it');
    return createProbe(aggregate.target, { ...config, child: aggregate.child }, context);
  }
  // The name tells the server's operator, in its log, that this client is only a probe.
  const clientInfo = { name: 'mcp-portage probe', version: VERSION };
  const { maxMessageBytes } = limits;
  const { deps } = context;
  if (target.kind === 'command') {
    const connector = createProcessDialer({ target, child, maxMessageBytes, deps });
    return new ConnectionProbe({ connector, transport: 'stdio', protocol, timeoutMs, clientInfo, ...context });
  }
  if (target.kind === 'stream') {
    const { createByteStreamConnector } = await import('../upstream/byte-stream/connector.ts');
    const connector = createByteStreamConnector({
      address: target.address,
      tls: remote.tls,
      // The overall time limit applies instead.
      connectTimeoutMs: 0,
      maxMessageBytes,
      failureLevel: 'debug',
      deps,
    });
    return new ConnectionProbe({ connector, transport: 'byte-stream', protocol, timeoutMs, clientInfo, ...context });
  }
  if (target.kind === 'replay') {
    const { createReplayConnector } = await import('../upstream/replay/connector.ts');
    const connector = createReplayConnector({ target, speed: replaySpeed, deps });
    return new ConnectionProbe({ connector, transport: 'replay', protocol, timeoutMs, clientInfo, ...context });
  }
  if (target.kind === 'grpc') {
    const { createGrpcConnector } = await import('../upstream/grpc/connector.ts');
    const connector = createGrpcConnector({
      target,
      remote,
      // The overall time limit applies instead.
      connectTimeoutMs: 0,
      maxMessageBytes,
      failureLevel: 'debug',
      userAgent: `mcp-portage/${VERSION}`,
      deps,
    });
    return new ConnectionProbe({ connector, transport: 'grpc', protocol, timeoutMs, clientInfo, ...context });
  }
  if (target.kind === 'mqtt') {
    const { createMqttConnector } = await import('../upstream/mqtt/connector.ts');
    const connector = createMqttConnector({
      target,
      remote,
      connectTimeoutMs: remote.timeouts.connectMs,
      maxMessageBytes,
      clientInfo,
      failureLevel: 'debug',
      deps,
    });
    // Servers at brokers hear nothing but `initialize` before a session.
    const era = protocol === 'auto' ? 'legacy' : protocol;
    return new ConnectionProbe({ connector, transport: 'mqtt', protocol: era, timeoutMs, clientInfo, ...context });
  }
  const { url } = target;
  const server = handshakeUrlOf(url);
  const credentials = remote.login === undefined ? undefined : await createLogin(server, remote, remote.login, context);
  if (isWebSocketUrl(url)) {
    const { createRemoteWebSocketConnector } = await import('../upstream/websocket/connector.ts');
    const connector = createRemoteWebSocketConnector({
      target,
      remote,
      maxMessageBytes,
      clientInfo,
      credentials,
      deps,
    });
    return new ConnectionProbe({ connector, transport: 'websocket', protocol, timeoutMs, clientInfo, ...context });
  }
  const http = createHttpClient({ target, remote, clientInfo, credentials, deps });
  return new UrlProbe({ url, protocol, remote, http, credentials, maxMessageBytes, clientInfo, ...context });
}

/** Short, because the user waits for the report and the server has no open calls to finish. */
const CLOSE_GRACE_MS = 2000;

/** Throws BridgeError ERR_UPSTREAM_SPAWN if the program does not exist. */
function createProcessDialer(
  server: Pick<StdioConnectorOptions, 'target' | 'child' | 'maxMessageBytes' | 'deps'>,
): Connector {
  return createStdioConnector({
    ...server,
    shutdownGraceMs: CLOSE_GRACE_MS,
    // The report has the reason, so the log need not warn.
    failureLevel: 'debug',
    children: new ChildLimit(),
    urgency: undefined,
    trialClient: undefined,
  });
}

/** Loaded where it was asked for. */
async function createLogin(
  server: URL,
  remote: RemoteConfig,
  config: LoginConfig,
  { findings, deps }: Pick<ProbeContext, 'findings' | 'deps'>,
): Promise<Credentials> {
  const login = await import('../http/login/create-login.ts');
  return login.createLogin({
    server,
    config,
    remote,
    userAgent: `mcp-portage/${VERSION}`,
    openShared: undefined,
    registered: () => undefined,
    waits: 'user',
    waiting: (task) => findings.steps.waitForUser(task),
    deps,
  });
}

function conclude(
  target: ServerConfig['target'],
  { remote, aggregate }: ProbeConfig,
  findings: Findings,
  tookMs: number,
): ProbeReport {
  const isUsable = findings.offers.some((offer) => offer.works);
  if (isUsable && findings.authorization !== undefined) {
    findings.problem(`Some requests are refused with ${findings.authorization.status}, although others are not.`);
  }
  const verdict = concludeVerdict(findings, isUsable);
  if (verdict === 'unusable' && findings.problems.length === 0) {
    const hint = target.kind === 'url' ? ' Is the path right (/mcp and /sse are common)?' : '';
    findings.problem(`It answers, but not as an MCP server does.${hint}`);
  }
  const { offers, problems, authorization, steps } = findings;
  return {
    format: 1,
    target: { kind: target.kind, name: target.kind === 'aggregate' ? AGGREGATE_NAME : nameTarget(target) },
    verdict,
    offers,
    authorization,
    problems,
    clients:
      target.kind === 'aggregate'
        ? adviseClients(offers, aggregate?.shown ?? '', 'through-portage')
        : adviseClients(offers, showTarget(target, remote)),
    steps: steps.steps,
    tookMs: Math.round(tookMs),
  };
}

function concludeVerdict({ problems, authorization, isAccountRefused }: Findings, isUsable: boolean): ProbeConclusion {
  if (isUsable) return problems.length === 0 ? 'usable' : 'partly-usable';
  return authorization === undefined && !isAccountRefused ? 'unusable' : 'unauthorized';
}
