import type { Protocol, RemoteConfig } from '../config.ts';
import type { Deps } from '../deps.ts';
import type { HttpClient } from '../http/client/client.ts';
import { SessionCookies } from '../http/client/cookies.ts';
import type { Credentials } from '../http/client/credentials.ts';
import { askForTls } from '../http/client/network-error.ts';
import type { InitializeVerdict, ProbeVerdict } from '../mcp/classify/probe-answer.ts';
import type { Implementation } from '../mcp/vocabulary/meta.ts';
import { askHttp, type HttpAnswer } from '../upstream/detect/ask/ask-http.ts';
import type { HttpTarget } from '../upstream/detect/ask/ask-once.ts';
import type { Frame } from '../wire/frame.ts';
import { findAuthorization } from './authorization.ts';
import type { Findings } from './findings.ts';
import { STEP_TIMEOUT_MS } from './probe-config.ts';

export interface HttpProbeOptions {
  readonly url: URL;
  readonly protocol: Protocol;
  readonly remote: RemoteConfig;
  readonly http: HttpClient;
  /** The credentials that `http` uses; closed with it. */
  readonly credentials: Credentials | undefined;
  readonly maxMessageBytes: number;
  readonly clientInfo: Implementation;
  readonly findings: Findings;
  readonly signal: AbortSignal;
  readonly deps: Deps;
}

/** `over`: whatever else could be tried would come to the same. */
export type Progress = 'go-on' | 'over';

/** What the ways of speaking with a server at a URL need to be tried. */
export class HttpProbe {
  readonly options: HttpProbeOptions;
  readonly findings: Findings;
  readonly target: HttpTarget;
  readonly #cleanups: (() => Promise<void>)[] = [];
  #nextId = 1;

  constructor(options: HttpProbeOptions) {
    const { url, http, maxMessageBytes, findings } = options;
    this.options = options;
    this.findings = findings;
    this.target = { http, url, cookies: new SessionCookies(), maxMessageBytes };
  }

  takeId(): number {
    return this.#nextId++;
  }

  /** Rejects when the time is up, like everything here. */
  post(frame: Frame, headers: Readonly<Record<string, string>>): Promise<HttpAnswer> {
    const { signal } = this.options;
    return this.findings.steps.run(`POST ${frame.method}`, () =>
      askHttp(this.target, { frame, headers, timeoutMs: STEP_TIMEOUT_MS, signal }),
    );
  }

  /** What follows from an answer that is no way in. */
  async refused(
    request: string,
    { kind }: ProbeVerdict | InitializeVerdict,
    { head, words, error }: Pick<HttpAnswer, 'head' | 'words' | 'error'>,
  ): Promise<Progress> {
    if (kind === 'unreachable') {
      if (error === undefined) this.findings.problem(words);
      else this.findings.failure(error);
      return 'over';
    }
    if (kind === 'failing' || kind === 'busy') {
      this.findings.problem(`${request} fails: ${words}${askForTls(this.options.url, error?.data?.cause)}.`);
    }
    // Another way may be open all the same: some gateways refuse methods they do not know.
    if (kind === 'unauthorized' && head !== undefined && this.findings.authorization === undefined) {
      const { signal } = this.options;
      const { steps } = this.findings;
      this.findings.authorization = await findAuthorization({ target: this.target, head, steps, signal });
    }
    return 'go-on';
  }

  /** Runs at the end, even if the time is up. */
  onClose(cleanup: () => Promise<void>): void {
    this.#cleanups.push(cleanup);
  }

  async close(): Promise<void> {
    await Promise.all(this.#cleanups.splice(0).map((cleanup) => cleanup()));
  }
}
