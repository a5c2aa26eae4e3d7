import type { ExecutionContext } from 'ava';
import { systemClock } from '../../src/cli/system-deps.ts';
import type { BridgeError } from '../../src/errors.ts';
import { NO_TIMEOUTS } from '../../src/http/client/call-limits.ts';
import { HttpClient, type HttpClientOptions } from '../../src/http/client/client.ts';
import { SessionCookies } from '../../src/http/client/cookies.ts';
import type { HttpHandler, HttpRequest, ResponseHead } from '../../src/http/client/http-call.ts';
import { waitFor } from '../support/wait-for.ts';

export function createClient(options: Partial<HttpClientOptions> = {}): HttpClient {
  return new HttpClient({
    headers: new Map(),
    bearerTokenFile: undefined,
    credentials: undefined,
    tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
    proxyEnv: {},
    socketPath: undefined,
    userAgent: 'mcp-portage/test',
    clock: systemClock,
    ...options,
  });
}

/** One call and everything its handler heard. */
export class RecordedCall implements HttpHandler {
  readonly order: string[] = [];
  readonly chunks: Buffer[] = [];
  head: ResponseHead | undefined;
  failure: BridgeError | undefined;
  hasEnded = false;
  readonly call: ReturnType<HttpClient['request']>;

  constructor(client: HttpClient, url: URL, request: Partial<HttpRequest> = {}) {
    this.call = client.request(
      {
        method: 'POST',
        url,
        headers: {},
        forwarded: undefined,
        body: Buffer.from('{}'),
        timeouts: NO_TIMEOUTS,
        cookies: new SessionCookies(),
        isRepeatable: false,
        ...request,
      },
      this,
    );
  }

  get body(): string {
    return Buffer.concat(this.chunks).toString('utf8');
  }

  sent(): void {
    this.order.push('sent');
  }

  response(head: ResponseHead): void {
    this.order.push('response');
    this.head = head;
  }

  data(chunk: Buffer): void {
    if (this.order.at(-1) !== 'data') this.order.push('data');
    this.chunks.push(chunk);
  }

  end(): void {
    this.order.push('end');
    this.hasEnded = true;
  }

  error(error: BridgeError): void {
    this.order.push('error');
    this.failure = error;
  }

  async finished(): Promise<this> {
    await waitFor(() => this.hasEnded || this.failure !== undefined, { message: 'the call to finish' });
    return this;
  }
}

/** Closes when the test is over, in this order. */
export function closeAfter(t: ExecutionContext, ...closables: readonly { close(): unknown }[]): void {
  t.teardown(async () => {
    for (const closable of closables) await closable.close();
  });
}
