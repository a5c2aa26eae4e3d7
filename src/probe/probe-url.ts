import { looksLost, placesBeside, tellWhatIsBeside } from './beside-url.ts';
import { Findings } from './findings.ts';
import { HttpProbe, type HttpProbeOptions, type Progress } from './http-probe.ts';
import { probeHttpSse } from './probe-http-sse.ts';
import { probeModernHttp } from './probe-modern-http.ts';
import { probeStreamable } from './probe-streamable.ts';

type Way = (probe: HttpProbe) => Promise<Progress>;

/** Tries every way of speaking with a server at a URL, one after the other, and clears up behind itself. */
export class UrlProbe {
  readonly #probe: HttpProbe;
  /** The probes of other paths. */
  readonly #others: HttpProbe[] = [];
  readonly #ways: readonly Way[];

  constructor(options: HttpProbeOptions) {
    const { protocol, remote } = options;
    const { transport } = remote;
    this.#probe = new HttpProbe(options);
    const isPost = transport !== 'sse';
    const isLegacy = protocol !== 'modern';
    this.#ways = [
      ...(isPost && protocol !== 'legacy' ? [probeModernHttp] : []),
      ...(isPost && isLegacy ? [probeStreamable] : []),
      ...(isLegacy && transport !== 'streamable-http' ? [probeHttpSse] : []),
    ];
  }

  /** Rejects when the time is up; then the findings hold what is known. */
  async run(): Promise<void> {
    for (const way of this.#ways) if ((await way(this.#probe)) === 'over') return;
    // A login is for the URL that was given, not for one that is guessed.
    if (this.#probe.options.credentials === undefined && looksLost(this.#probe.findings)) await this.#lookBeside();
  }

  /** At the paths that are usual, until an MCP server shows. */
  async #lookBeside(): Promise<void> {
    const { options, findings } = this.#probe;
    for (const url of placesBeside(options.url)) {
      const there = new Findings(findings.steps.at(url.pathname));
      const probe = new HttpProbe({ ...options, url, findings: there });
      this.#others.push(probe);
      const isUsual = (way: Way): boolean => (way === probeHttpSse) === url.pathname.endsWith('/sse');
      for (const way of this.#ways.filter(isUsual)) await way(probe);
      if (tellWhatIsBeside({ url, there, findings, remote: options.remote })) return;
    }
    findings.problem('Nothing is at this path (404), and no MCP server at /mcp or /sse beside it. Check the URL.');
  }

  async close(): Promise<void> {
    const { http, credentials } = this.#probe.options;
    // A login that nobody has completed would hold up the rest.
    credentials?.close();
    await Promise.all([this.#probe, ...this.#others].map((probe) => probe.close()));
    http.close();
  }
}
