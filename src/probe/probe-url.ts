import { HttpProbe, type HttpProbeOptions, type Progress } from './http-probe.ts';
import { probeHttpSse } from './probe-http-sse.ts';
import { probeModernHttp } from './probe-modern-http.ts';
import { probeStreamable } from './probe-streamable.ts';

type Way = (probe: HttpProbe) => Promise<Progress>;

/** Tries every way of speaking with a server at a URL, one after the other, and clears up behind itself. */
export class UrlProbe {
  readonly #probe: HttpProbe;
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
  }

  async close(): Promise<void> {
    const { http, credentials } = this.#probe.options;
    // A login that nobody has completed would hold up the rest.
    credentials?.close();
    await this.#probe.close();
    http.close();
  }
}
