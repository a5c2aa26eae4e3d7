/** Reads what hosts print about our server, and what the bridge's log says about them. Pure. */
import { stripVTControlCharacters } from 'node:util';
import type { HostSays, SeenClient } from './results.ts';

const MAX_WORDS = 200;

/** `NAME: http://… (HTTP) - ✔ Connected` */
export function readClaudeList(printed: string, name: string): HostSays {
  const line = linesOf(printed).find((candidate) => candidate.startsWith(`${name}: `));
  return readState(line?.split(' - ').at(-1), /^✔ Connected$/, printed);
}

/** `✓ NAME: http://… (http) - Connected` */
export function readGeminiList(printed: string, name: string): HostSays {
  const line = linesOf(printed).find((candidate) => candidate.slice(2).startsWith(`${name}: `));
  return readState(line?.split(' - ').at(-1), /^Connected$/, printed);
}

/** `●  ✓ NAME connected`; what is wrong stands on the next line. */
export function readOpencodeList(printed: string, name: string): HostSays {
  const lines = linesOf(printed).map((line) => line.replace(/^[●│┌└]\s*/, ''));
  const index = lines.findIndex((line) => line.slice(2).startsWith(`${name} `));
  const state = lines[index]?.slice(2 + name.length).trim();
  if (state === undefined || state === 'connected') return readState(state, /^connected$/, printed);
  return readState(`${state}: ${lines[index + 1] ?? ''}`, /^connected$/, printed);
}

/** The answer of Codex's app server to `mcpServerStatus/list`. */
export function readCodexStatus(printed: string, name: string, requestId: number): HostSays {
  const answer = linesOf(printed)
    .map(parseObject)
    .find((message) => message?.id === requestId);
  const servers = isObject(answer?.result) && Array.isArray(answer.result.data) ? answer.result.data : [];
  const server = servers.filter(isObject).find((candidate) => candidate.name === name);
  if (typeof server?.toolsError === 'string') return notConnected(server.toolsError);
  if (!isObject(server?.tools)) return notConnected(printed);
  return countTools(Object.keys(server.tools), printed);
}

/** Events of `copilot --output-format json`: the last state of our server that is not a state on the way. */
export function readCopilotEvents(printed: string, name: string): HostSays {
  const states = linesOf(printed)
    .map(parseObject)
    .flatMap((event) =>
      event?.type === 'session.mcp_server_status_changed' && isObject(event.data) && event.data.serverName === name
        ? String(event.data.status)
        : [],
    )
    .filter((state) => state !== 'pending');
  return readState(states.at(-1), /^connected$/, printed);
}

/** A result of `tools/list`, perhaps with other lines around it. */
export function readInspectorTools(printed: string): HostSays {
  const [json] = /^\{$.*^\}$/ms.exec(stripVTControlCharacters(printed)) ?? [];
  const tools = json === undefined ? undefined : parseObject(json)?.tools;
  return Array.isArray(tools) ? countTools(tools, printed) : notConnected(printed);
}

/** Clients that the bridge's log names, but for our own program. */
export function clientsInLog(log: string): readonly SeenClient[] {
  return log.split('\n').flatMap((line) => {
    const entry = parseObject(line);
    const { client, clientVersion, revision, transport } = entry ?? {};
    const isWhole = [client, clientVersion, revision, transport].every((member) => typeof member === 'string');
    if (!isWhole || client === 'mcp-portage') return [];
    return {
      name: String(client),
      version: String(clientVersion),
      revision: String(revision),
      transport: String(transport),
    };
  });
}

/** What `mcp-portage snippet` offers on stderr instead of a file: commands for a shell. */
export function commandsOffered(stderr: string): readonly string[] {
  const lines = stderr.split('\n');
  const begin = lines.indexOf('Or:');
  return begin === -1 ? [] : lines.slice(begin + 1).flatMap((line) => (line.startsWith('  ') ? line.trim() : []));
}

function countTools(tools: readonly unknown[], printed: string): HostSays {
  return tools.length > 0 ? { kind: 'connected', words: `${tools.length} tools` } : notConnected(printed);
}

function readState(state: string | undefined, connected: RegExp, printed: string): HostSays {
  if (state === undefined) return notConnected(printed);
  return connected.test(state) ? { kind: 'connected', words: state } : notConnected(state);
}

function notConnected(printed: string): HostSays {
  const words = linesOf(printed).join(' ').slice(0, MAX_WORDS);
  return { kind: 'not-connected', words: words === '' ? 'it printed nothing' : words };
}

function linesOf(printed: string): readonly string[] {
  return stripVTControlCharacters(printed)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
