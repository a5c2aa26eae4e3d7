/** The command line: parses arguments into a Config, runs the bridge, and exits. No other module exits the process. */
import { fstatSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { isatty } from 'node:tty';
import type { Logger } from 'pino';
import type { ClientPipes, LoginJob, LoginTerminal, StrayClient } from './bridge.ts';
import { showBanner } from './cli/banner.ts';
import { readTextFile } from './cli/check-files.ts';
import { type BridgeCommand, configFileOf, parseCommandLine } from './cli/command-line.ts';
import { renderCompletion } from './cli/completion.ts';
import type { HelpTopic } from './cli/help/topic.ts';
import type { InfoSurroundings } from './cli/info/collect-info.ts';
import {
  announceUrls,
  causeOf,
  listenForSignals,
  type ProcessEvents,
  type RunningBridge,
  superviseBridge,
} from './cli/lifecycle.ts';
import { type LoadedConfig, loadConfig, loadSnippet } from './cli/load-config.ts';
import type { reportUsage, TopRequest, ViewCommand } from './cli/looking.ts';
import type { CommandLineOptions } from './cli/options/option-table.ts';
import type { ProbeOptions } from './cli/parse/config.ts';
import type { RemoteSurroundings } from './cli/parse/servers/remote.ts';
import type { PinRequest } from './cli/pins.ts';
import type { ReloadParts } from './cli/reload.ts';
import { allowsColor, allowsLiveLine, type LiveLine } from './cli/terminal.ts';
import { V8Flags } from './cli/v8-flags.ts';
import type { Config } from './config.ts';
import { type BridgeError, toBridgeError } from './errors.ts';
import type { LogOptions } from './log.ts';
import { printableLines } from './printable.ts';
import type { ProbeRequest, ProbeResult } from './probe/probe-servers.ts';
import { renderSnippet, servedFileOf } from './snippet.ts';
import { VERSION } from './version.ts';

interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** The command line's access to the outside. `main` passes the real process; tests pass their own. */
export interface CliHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  readonly stdinIsTerminal: boolean;
  /** Returns true if the terminal that started the process is closed. */
  hasLostTerminal(): boolean;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly events: ProcessEvents;
  readonly v8Flags: V8Flags;
  /** Ends the process when its work is done, so that pending output is still written. */
  setExitCode(code: number): void;
  /** Ends the process immediately. */
  exit(code: number): void;
  /** Returns the command that starts this program. */
  ownCommand(): Promise<readonly string[]>;
  createLog(options: LogOptions): Promise<Logger>;
  /** Creates a live line on stderr. */
  createLiveLine(): Promise<LiveLine>;
  /** @param file the configuration file that the servers come from */
  runBridge(config: Config, log: Logger, file: string | undefined): Promise<RunningBridge>;
  createReload(parts: Omit<ReloadParts, 'clock'>): Promise<Reload>;
  runProbe(request: ProbeRequest, log: Logger): Promise<ProbeResult>;
  reportUsage: typeof reportUsage;
  showTop(command: BridgeCommand, around: RemoteSurroundings, request: TopRequest): Promise<void>;
  showView(command: ViewCommand, around: RemoteSurroundings, request: TopRequest): Promise<void>;
  /** Returns what `login --status` prints. */
  showLogins(options: CommandLineOptions, around: RemoteSurroundings): Promise<string>;
  changeLogins(job: LoginJob, log: Logger): Promise<string>;
  /** Returns what `info` prints. */
  showInfo(options: CommandLineOptions, around: InfoSurroundings): Promise<string>;
  /** Returns what `pin` prints. */
  runPin(request: PinRequest, around: RemoteSurroundings, log: Logger): Promise<string>;
  /** Calls back with each line of stdin. Returns a function that stops the calls. */
  onLine: LoginTerminal['onLine'];
}

/** Never rejects: every error is written to stderr and becomes an exit code. */
export async function runCli(argv: readonly string[], host: CliHost): Promise<void> {
  try {
    const commandLine = parseCommandLine(argv, host.platform, host.env);
    switch (commandLine.kind) {
      case 'help':
        return await showHelp(commandLine.topic, host);
      case 'version':
        host.stdout.write(`${VERSION}\n`);
        return;
      case 'completion':
        host.stdout.write(renderCompletion(commandLine.shell));
        return;
      case 'logins':
        host.stdout.write(await host.showLogins(commandLine.options, { ...host, readFile: readTextFile }));
        return;
      case 'pin': {
        const log = await host.createLog({ level: 'warn', format: 'pretty', colors: false });
        // Keeps the process alive while another one changes the file.
        const held = setInterval(() => undefined, MAX_TIMER_MS);
        try {
          host.stdout.write(await host.runPin(commandLine, { ...host, readFile: readTextFile }, log));
        } finally {
          clearInterval(held);
        }
        return;
      }
      case 'info':
        host.stdout.write(await host.showInfo(commandLine.options, host));
        return;
      case 'view':
        return await view(commandLine, host);
      case 'bridge':
        return await run(commandLine, host);
    }
  } catch (thrown) {
    const error = toBridgeError(thrown);
    host.setExitCode(error.audiences.exit ?? 70);
    if (asksForJson(argv, host.env)) return await logError(error, host);
    host.stderr.write(`mcp-portage: ${error.code}: ${error.message}\n`);
    if (error.code === 'ERR_INTERNAL' && error.cause instanceof Error)
      host.stderr.write(`${printableLines(error.cause.stack ?? '')}\n`);
    // On a line of its own, since the message may end with a command to copy.
    if (host.stderr.isTTY === true) host.stderr.write(`(mcp-portage help ${error.code} says more)\n`);
  }
}

/** Returns true if the log is asked for in JSON. The command line may have any mistake, so only this option is looked for. */
function asksForJson(argv: readonly string[], env: CliHost['env']): boolean {
  const end = argv.indexOf('--');
  const head = end === -1 ? argv : argv.slice(0, end);
  const written = head.flatMap((word, index) =>
    word === '--log-format' ? [head[index + 1]] : word.startsWith('--log-format=') ? [word.split('=')[1]] : [],
  );
  return (written.at(-1) ?? env.MCP_PORTAGE_LOG_FORMAT) === 'json';
}

/** Writes an error that ends the program like those of a running bridge. */
async function logError(error: BridgeError, { createLog }: CliHost): Promise<void> {
  const log = await createLog({ level: 'error', format: 'json', colors: false });
  log.fatal({ code: error.code, ...causeOf(error) }, error.message);
}

/** The width of output that is not a terminal. */
const DEFAULT_COLUMNS = 100;
/** The width of help that is not written to a terminal: it probably goes to a pager, in a terminal of this width. */
const DEFAULT_HELP_COLUMNS = 80;

async function showHelp(topic: HelpTopic, { stdout, env }: CliHost): Promise<void> {
  const { renderHelp } = await import('./cli/help/help.ts');
  const columns = stdout.columns ?? DEFAULT_HELP_COLUMNS;
  stdout.write(renderHelp({ topic, columns, color: allowsColor(stdout.isTTY === true, env) }));
}

/** Logged by `connect` on a terminal: its user probably tries it by hand and waits for output. */
const FOR_CLIENTS =
  'connect waits for an MCP client on its stdin; clients start this command themselves. To try the server by hand, run mcp-portage probe instead, with --login on-demand to log in';

async function run(command: BridgeCommand, host: CliHost): Promise<void> {
  const stderrIsTerminal = host.stderr.isTTY === true;
  if (command.verb === 'snippet') return await printSnippet(command, host);
  if (command.verb === 'report' || command.verb === 'top') return await look(command, host);
  const load = (): Promise<LoadedConfig> => loadConfig(command, { ...host, stderrIsTerminal });
  const loadAgain = (): Promise<LoadedConfig> => loadConfig(command, { ...host, stderrIsTerminal }, 0);
  const loaded = configFileOf(command, host.env) === undefined ? await load() : await loadFile(load, host);
  const { config, probe, warnings } = loaded;
  const isLive = command.verb === 'probe' && allowsLiveLine({ stderrIsTerminal, env: host.env, log: config.log });
  const live = isLive ? await host.createLiveLine() : undefined;
  const colors = allowsColor(stderrIsTerminal, host.env);
  const log = await host.createLog({ ...config.log, colors, beforeLine: live && (() => live.erase()) });
  for (const warning of warnings) log.warn(warning);
  if (command.verb === 'probe') return await reportOn({ command, config, probe, host, log, live });
  if (command.verb === 'login' || command.verb === 'logout') {
    return await changeLoginsOf(command.verb, { config, host, log });
  }
  if (command.verb === 'connect' && host.stdinIsTerminal) log.info(FOR_CLIENTS);
  let reload: Reload | undefined;
  let running: RunningBridge | undefined;
  const start = async (): Promise<RunningBridge> => {
    const bridge = await host.runBridge(config, log, loaded.files[0]);
    running = bridge;
    if (loaded.files.length > 0 && bridge.update !== undefined) {
      reload = await host.createReload({ bridge, loaded, load: loadAgain, log });
      reload.start();
    }
    return bridge;
  };
  const hangUp = () => {
    // Tools send SIGHUP after rotating log files or changing the configuration.
    const isHandled = running !== undefined && (reload !== undefined || config.observation.audit !== undefined);
    if (!isHandled || host.hasLostTerminal()) return 'ends';
    running?.reopen();
    void reload?.reload();
    return 'handled';
  };
  // Keeps the process alive. The bridge's own timers do not, and after the end of stdin a timer can be all that is
  // pending, such as the pause before a stream is resumed.
  const held = setInterval(() => undefined, MAX_TIMER_MS);
  const { listener } = config;
  const announce = (bridge: RunningBridge): void => {
    if (config.log.format === 'pretty' && listener.kind === 'http') {
      showBanner(bridge, { access: listener.access, file: servedFileOf(loaded.files[0]) }, log);
    } else announceUrls(bridge, log);
  };
  const whenLate = (late: () => void): void => {
    const limitMs = GRACE_PERIODS * config.limits.shutdownGraceMs + SHUTDOWN_MARGIN_MS;
    setTimeout(late, Math.min(limitMs, MAX_TIMER_MS)).unref();
  };
  const exitCode = await superviseBridge({ start, hangUp, announce, whenLate, events: host.events, log });
  clearInterval(held);
  host.exit(exitCode);
}

async function loadFile(load: () => Promise<LoadedConfig>, { v8Flags }: CliHost): Promise<LoadedConfig> {
  const { withoutOptimizer } = await import('./cli/v8-tuning.ts');
  return withoutOptimizer(v8Flags, load);
}

const MAX_TIMER_MS = 2 ** 31 - 1;
/**
 * `--shutdown-grace` applies three times in a row: to open calls, to those of other replicas, and to child processes.
 */
const GRACE_PERIODS = 3;
/**
 * Time to end sessions at remote servers, and to close files and the store. Each of these has a time limit of its own.
 */
const SHUTDOWN_MARGIN_MS = 20_000;

async function changeLoginsOf(
  verb: LoginJob['verb'],
  { config, host, log }: Pick<ReportJob, 'config' | 'host' | 'log'>,
): Promise<void> {
  const interruption = listenForSignals(host.events, (code) => host.exit(code));
  const terminal = { write: (text: string) => void host.stderr.write(text), onLine: host.onLine };
  // Keeps the process alive while a user enters a code elsewhere: timers do not, and nothing else is pending then.
  const held = setInterval(() => undefined, MAX_TIMER_MS);
  try {
    host.stdout.write(await host.changeLogins({ verb, config, terminal, signal: interruption.signal }, log));
  } catch (thrown) {
    if (interruption.exitCode === undefined) throw thrown;
    host.setExitCode(interruption.exitCode);
  } finally {
    clearInterval(held);
  }
}

interface ReportJob {
  readonly command: BridgeCommand;
  readonly config: Config;
  readonly probe: ProbeOptions;
  readonly host: CliHost;
  readonly log: Logger;
  readonly live: LiveLine | undefined;
}

/** Reads the configuration file again while the bridge runs. */
export interface Reload {
  /** Starts to look for changes. */
  start(): void;
  reload(): Promise<void>;
}

/** Runs `report` or `top`, whose output goes to stdout. */
async function look(command: BridgeCommand, host: CliHost): Promise<void> {
  const around = { ...host, readFile: readTextFile };
  const color = allowsColor(host.stdout.isTTY === true, host.env);
  if (command.verb === 'report') {
    const screen = { width: host.stdout.columns ?? DEFAULT_COLUMNS, color };
    const { report, exitCode } = await host.reportUsage(command, around, screen);
    host.stdout.write(report);
    return host.setExitCode(exitCode);
  }
  const interruption = listenForSignals(host.events, (code) => host.exit(code));
  await host.showTop(command, around, { color, signal: interruption.signal });
  host.setExitCode(0);
}

/** Runs `view`, whose output goes to stdout. */
async function view(command: ViewCommand, host: CliHost): Promise<void> {
  const color = allowsColor(host.stdout.isTTY === true, host.env);
  const interruption = listenForSignals(host.events, (code) => host.exit(code));
  // Keeps the process alive while nothing is recorded.
  const held = setInterval(() => undefined, MAX_TIMER_MS);
  try {
    await host.showView(command, { ...host, readFile: readTextFile }, { color, signal: interruption.signal });
    host.setExitCode(0);
  } finally {
    clearInterval(held);
  }
}

/**
 * Prints snippets. For one host, stdout gets nothing but the snippet, which can then be redirected to a file, and the
 * instructions go to stderr. With several hosts, all text goes to stdout.
 */
async function printSnippet(command: BridgeCommand, host: CliHost): Promise<void> {
  const stderrIsTerminal = host.stderr.isTTY === true;
  const { hosts, servers, file } = await loadSnippet(command, { ...host, stderrIsTerminal });
  const words = hosts.length === 1 ? host.stderr : host.stdout;
  hosts.forEach((name, index) => {
    const { place, text, instead, notes } = renderSnippet(name, servers, file);
    words.write(hosts.length === 1 ? `For ${place}:\n\n` : `${index === 0 ? '' : '\n\n'}# ${name}, for ${place}:\n\n`);
    host.stdout.write(text);
    if (instead.length > 0) words.write(`\nOr:\n${instead.map((line) => `  ${line}\n`).join('')}`);
    if (notes.length > 0) words.write(`\n${notes.map((line) => `${line}\n`).join('')}`);
  });
}

/** Runs `probe`. The report goes to stdout, and the exit code sums it up. */
async function reportOn({ command, config, probe, host, log, live }: ReportJob): Promise<void> {
  const color = allowsColor(host.stdout.isTTY === true, host.env);
  const width = host.stdout.columns ?? DEFAULT_COLUMNS;
  const interruption = listenForSignals(host.events, (code) => {
    live?.close();
    host.exit(code);
  });
  const { signal } = interruption;
  const waiting = (what: string, limitMs?: number): void => live?.show(what, limitMs);
  const [server] = config.servers;
  const isAggregate = server.target.kind === 'aggregate';
  const aggregate = isAggregate ? await commandOfAggregate(command, host) : undefined;
  try {
    const request = { config, ...probe, color, width, signal, waiting, aggregate };
    const { report, exitCode } = await host.runProbe(request, log);
    live?.close();
    host.stdout.write(report);
    host.setExitCode(interruption.exitCode ?? exitCode);
  } finally {
    live?.close();
  }
}

async function commandOfAggregate(command: BridgeCommand, host: CliHost) {
  const { aggregateCommand } = await import('./cli/aggregate-command.ts');
  return aggregateCommand(command, await host.ownCommand(), host);
}

/** Descriptors that were terminals at the start. `isatty` returns false for a terminal that has since been closed. */
const TERMINALS = [0, 1, 2].filter((fd) => isatty(fd));

/** Returns true if an MCP client could be at the other end. A terminal, a file and /dev/null are no pipes. */
function isPipe(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isFIFO() || stats.isSocket();
  } catch {
    // The descriptor is closed.
    return false;
  }
}

async function toStrayClient({ servers: [server] }: Config, file: string | undefined): Promise<StrayClient> {
  const { showListed, showTarget } = await import('./probe/clients.ts');
  const { listing, target, remote } = server;
  const isListed = file !== undefined && (listing !== undefined || target.kind === 'aggregate');
  const what = isListed
    ? showListed(file, listing?.name)
    : target.kind === 'aggregate'
      ? ''
      : showTarget(target, remote);
  return { input: process.stdin, output: process.stdout, connectCommand: `mcp-portage connect ${what}` };
}

/** The files of the built program. */
export interface BuiltFiles {
  /** Loads whatever is loaded from now on inside of a call of this function. */
  loadInside(around: <Result>(load: () => Result) => Result): void;
  /** Stores the compiled code of the loaded files for the next start. */
  keepCompiledCode(): void;
}

/** Runs the command line of this process. `files` are given if the program was built as several files. */
export function main(files?: BuiltFiles): Promise<void> {
  const v8Flags = new V8Flags();
  files?.loadInside((load) => v8Flags.withDefaults(load));
  // A reader that closed its end (`mcp-portage --help | head -1`, a closed terminal) must not crash the process.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);
  const parent = process.ppid;
  // The parent id changes when the parent dies, except on Windows. A process whose stdout is a file is never an orphan:
  // it may be meant to outlive its parent (`nohup`).
  const isOrphaned = (): boolean => process.ppid !== parent && !fstatSync(process.stdout.fd).isFile();
  return runCli(process.argv.slice(2), {
    // A copy, since each read of `process.env` asks the system.
    env: { ...process.env },
    cwd: process.cwd(),
    platform: process.platform,
    stdinIsTerminal: isatty(0),
    hasLostTerminal: () => TERMINALS.some((fd) => !isatty(fd)),
    stdout: process.stdout,
    stderr: process.stderr,
    events: process,
    v8Flags,
    setExitCode(code) {
      process.exitCode = code;
    },
    exit: (code) => process.exit(code),
    ownCommand: async () => {
      const { isSea } = await import('node:sea');
      const [program, file = ''] = process.argv;
      return isSea() ? [process.execPath] : [program ?? process.execPath, ...process.execArgv, file];
    },
    createLog: async (options) => (await import('./log.ts')).createLog(options),
    createLiveLine: async () => {
      const [{ LiveLine }, { systemClock }] = await Promise.all([
        import('./cli/terminal.ts'),
        import('./cli/system-deps.ts'),
      ]);
      return new LiveLine(process.stderr, systemClock);
    },
    runBridge: async (config, log, file) => {
      const [{ runBridge }, { createSystemDeps, systemClock }, { giveHeapHeadroom, keepOnce }] = await Promise.all([
        import('./bridge.ts'),
        import('./cli/system-deps.ts'),
        import('./cli/v8-tuning.ts'),
      ]);
      giveHeapHeadroom(systemClock, v8Flags);
      const keep = (): void => v8Flags.withDefaults(() => files?.keepCompiledCode());
      keepOnce(keep, { clock: systemClock, events: process });
      const strayClient = config.listener.kind === 'http' && isPipe(0) ? await toStrayClient(config, file) : undefined;
      // On POSIX, Node writes to pipes without blocking, so a client that stops reading affects only its own stream. On
      // Windows, it makes a pipe on stdout blocking.
      const openPipes = (): ClientPipes => ({ input: process.stdin, output: process.stdout, isOrphaned });
      return runBridge(config, createSystemDeps(log), openPipes, strayClient);
    },
    createReload: async (parts) => {
      const [{ Reload }, { systemClock }] = await Promise.all([
        import('./cli/reload.ts'),
        import('./cli/system-deps.ts'),
      ]);
      return new Reload({ ...parts, clock: systemClock });
    },
    reportUsage: async (...request) => (await import('./cli/looking.ts')).reportUsage(...request),
    showLogins: async (options, around) => {
      const [{ parseStateDirectory }, { listLogins }] = await Promise.all([
        import('./cli/parse/looking.ts'),
        import('./bridge.ts'),
      ]);
      return listLogins(parseStateDirectory(options, around));
    },
    changeLogins: async (job, log) => {
      const [{ changeLogins }, { createSystemDeps }] = await Promise.all([
        import('./bridge.ts'),
        import('./cli/system-deps.ts'),
      ]);
      return changeLogins(job, createSystemDeps(log));
    },
    showInfo: async (...request) => (await import('./cli/info/show-info.ts')).showInfo(...request),
    runPin: async (...request) => (await import('./cli/pins.ts')).runPin(...request),
    onLine: (entered) => {
      const lines = createInterface({ input: process.stdin });
      lines.on('line', entered);
      return () => {
        lines.close();
        process.stdin.unref();
      };
    },
    showTop: async (command, around, request) => {
      const stdin = isatty(0) ? process.stdin : undefined;
      const devices = { stdin, stdout: process.stdout, events: process };
      return (await import('./cli/looking.ts')).showTop(command, around, { ...request, ...devices });
    },
    showView: async (command, around, request) => {
      const devices = { stdout: process.stdout, stderr: process.stderr };
      return (await import('./cli/looking.ts')).showView(command, around, { ...request, ...devices });
    },
    runProbe: async (request, log) => {
      const [{ probeServers }, { createSystemDeps }] = await Promise.all([
        import('./probe/probe-servers.ts'),
        import('./cli/system-deps.ts'),
      ]);
      return probeServers(request, createSystemDeps(log));
    },
  });
}
