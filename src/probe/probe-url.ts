import type { RemoteConfig } from '../config/remote.ts';
import { showUrl } from '../http/shown-url.ts';
import { reachedAs } from '../http/socket-addresses.ts';
import { showTarget } from './clients.ts';
import { Findings } from './findings.ts';
import {
  HttpProbe,
  type HttpProbeOptions,
  type Progress,
  probeHttpSse,
  probeModernHttp,
  probeStreamable,
} from './http-probes.ts';
import { TRANSPORT_NAMES } from './report.ts';

type TransportProbe = (probe: HttpProbe) => Promise<Progress>;

/** Tries every transport with a server at a URL, one after the other, and closes everything it has opened. */
export class UrlProbe {
  readonly #probe: HttpProbe;
  /** The probes of other paths. */
  readonly #others: HttpProbe[] = [];
  readonly #transports: readonly TransportProbe[];

  constructor(options: HttpProbeOptions) {
    const { protocol, remote } = options;
    const { transport } = remote;
    this.#probe = new HttpProbe(options);
    const isPost = transport !== 'sse';
    const isLegacy = protocol !== 'modern';
    this.#transports = [
      ...(isPost && protocol !== 'legacy' ? [probeModernHttp] : []),
      ...(isPost && isLegacy ? [probeStreamable] : []),
      ...(isLegacy && transport !== 'streamable-http' ? [probeHttpSse] : []),
    ];
  }

  /** Rejects when the time is up; the findings then hold what was found so far. */
  async run(): Promise<void> {
    let progress: Progress = 'go-on';
    for (const tryTransport of this.#transports) {
      if (progress === 'http-sse' && tryTransport !== probeHttpSse) continue;
      progress = await tryTransport(this.#probe);
      if (progress === 'over') return;
    }
    // A login applies to the given URL, so its token must not be sent to a guessed one.
    if (this.#probe.options.credentials === undefined && looksLost(this.#probe.findings)) await this.#lookBeside();
  }

  /** Tries the usual paths until an MCP server responds. */
  async #lookBeside(): Promise<void> {
    const { options, findings } = this.#probe;
    for (const url of placesBeside(options.url)) {
      const there = new Findings(findings.steps.at(url.pathname));
      const probe = new HttpProbe({ ...options, url, findings: there });
      this.#others.push(probe);
      const isUsual = (probe: TransportProbe): boolean => (probe === probeHttpSse) === url.pathname.endsWith('/sse');
      for (const tryTransport of this.#transports.filter(isUsual)) await tryTransport(probe);
      if (tellWhatIsBeside({ url, there, findings, remote: options.remote })) return;
    }
    findings.problem('Nothing is at this path (404), and no MCP server at /mcp or /sse beside it. Check the URL.');
  }

  async close(): Promise<void> {
    const { http, credentials } = this.#probe.options;
    // A pending login would delay the end of the probe.
    credentials?.close();
    await Promise.all([this.#probe, ...this.#others].map((probe) => probe.close()));
    http.close();
  }
}

// ---- Usual paths at the same origin, for a URL that answers 404

const NOT_FOUND = 404;
const USUAL = ['mcp', 'sse'] as const;

/**
 * Returns true if no server is at this path: a request was answered with 404, no transport works, and credentials are
 * not the reason.
 */
export function looksLost({ offers, authorization, steps }: Findings): boolean {
  const isUsable = authorization !== undefined || offers.some(({ works }) => works);
  return !isUsable && steps.steps.some(({ status }) => status === NOT_FOUND);
}

/** The usual paths beside the given one, below it and at the root, each with its query. */
export function placesBeside(url: URL): readonly URL[] {
  const path = url.pathname.replace(/\/+$/, '');
  const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')));
  const below = USUAL.some((name) => path.endsWith(`/${name}`)) ? [] : [path];
  const folders = url.pathname.endsWith('/') ? [...below, parent] : [parent, ...below];
  const paths = new Set([...folders, ''].flatMap((folder) => USUAL.map((name) => `${folder}/${name}`)));
  paths.delete(path);
  return [...paths].map((pathname) => reachedAs(url, Object.assign(new URL(url), { pathname })));
}

/** Another URL (`url`) with the findings there, and the findings about the URL that was given. */
export interface Beside {
  readonly url: URL;
  readonly there: Findings;
  readonly findings: Findings;
  readonly remote: RemoteConfig;
}

/** Returns true if a server is at the other URL; the problem that names it is then added. */
export function tellWhatIsBeside({ url, there, findings, remote }: Beside): boolean {
  const spoken = there.offers
    .filter(({ works }) => works)
    .map(({ transport, era }) => `${TRANSPORT_NAMES[transport]}, ${era}`);
  const { authorization } = there;
  if (spoken.length === 0 && authorization === undefined) return false;
  const refusal = authorization?.token === 'refused' ? 'refuses the token it was given' : 'asks for authorization';
  const what = spoken.length > 0 ? `speaks MCP: ${spoken.join('; ')}` : `${refusal} (${authorization?.status})`;
  const command = `mcp-portage probe ${showTarget({ kind: 'url', url, socketPath: undefined }, remote)}`;
  findings.problem(
    `Nothing is at this path (${NOT_FOUND}), but ${showUrl(url)} ${what}. For a report on it: ${command}`,
  );
  return true;
}
