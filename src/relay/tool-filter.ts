import { readToolName } from '../mcp/classify/ambiguity.ts';
import { withoutTools } from '../mcp/classify/tool-list.ts';
import { CALL_TOOL, LIST_TOOLS } from '../mcp/vocabulary/methods.ts';
import { INTERNAL_ERROR, INVALID_PARAMS } from '../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../mcp/vocabulary/rpc-errors.ts';
import { type Frame, idToken } from '../wire/frame.ts';
import { errorFrame } from '../wire/write-message.ts';
import type { Exchange } from './exchange.ts';
import { PassingLink } from './passing-link.ts';
import type {
  CallContext,
  CallerDialers,
  CallerEnvironment,
  Readiness,
  ServerListener,
  UpstreamDialer,
  UpstreamLink,
} from './ports.ts';
import type { SessionState } from './sessions/session-state.ts';

/** Does no client see this tool, nor call it? */
export type IsHidden = (name: string) => boolean;

/**
 * A server whose clients see and call only some of its tools. It stands between the clients and all that translates or
 * shares, so that what is hidden is hidden in either era; what the bridge itself knows of the tools stays whole.
 */
export class FilteredDialers implements CallerDialers {
  readonly #dialers: CallerDialers;
  readonly #isHidden: IsHidden;

  /** @param dialers closed together with this one */
  constructor(dialers: CallerDialers, isHidden: IsHidden) {
    this.#dialers = dialers;
    this.#isHidden = isHidden;
  }

  get name(): string {
    return this.#dialers.name;
  }

  forCaller(environment: CallerEnvironment | undefined): Pick<UpstreamDialer, 'dial' | 'dialCalls'> {
    const dialer = this.#dialers.forCaller(environment);
    const isHidden = this.#isHidden;
    return {
      dial: (listener: ServerListener, session?: SessionState) =>
        new FilteredLink(listener, isHidden, (own) => dialer.dial(own, session)),
      dialCalls: (listener: ServerListener, context: CallContext) =>
        new FilteredLink(listener, isHidden, (own) => dialer.dialCalls(own, context)),
    };
  }

  readiness(): Readiness {
    return this.#dialers.readiness();
  }

  close(): Promise<void> {
    return this.#dialers.close();
  }

  killNow(): void {
    this.#dialers.killNow();
  }
}

class FilteredLink extends PassingLink {
  protected readonly link: UpstreamLink;
  readonly #isHidden: IsHidden;
  /** Requests for a list of tools, those that are over among them until the next one comes. */
  readonly #lists = new Set<Exchange>();

  constructor(listener: ServerListener, isHidden: IsHidden, dial: (listener: ServerListener) => UpstreamLink) {
    super(listener);
    this.#isHidden = isHidden;
    this.link = dial(this);
  }

  override send(frame: Frame, exchange?: Exchange): boolean {
    if (frame.method === LIST_TOOLS && exchange !== undefined) this.#note(exchange);
    const refusal = frame.method === CALL_TOOL ? this.#refusalOf(frame) : undefined;
    if (refusal === undefined) return super.send(frame, exchange);
    // A notification has no answer, but a server may do all the same what it names.
    if (frame.kind === 'request') this.listener.fromServer(errorFrame(idToken(frame), refusal), exchange);
    return true;
  }

  #note(list: Exchange): void {
    for (const earlier of this.#lists) if (earlier.state.kind !== 'open') this.#lists.delete(earlier);
    this.#lists.add(list);
  }

  /** [spec 2025-11-25 server/tools#error-handling] what is hidden is refused like a tool that does not exist */
  #refusalOf(call: Frame): RpcError | undefined {
    const name = readToolName(call);
    if (name === undefined) return UNCLEAR_NAME;
    return this.#isHidden(name) ? { code: INVALID_PARAMS, message: `Unknown tool: ${name.slice(0, 200)}` } : undefined;
  }

  override fromServer(frame: Frame, exchange?: Exchange): void {
    const isList = frame.kind === 'result' && this.#lists.size > 0 && this.#isAsked(frame, exchange);
    super.fromServer(isList ? this.#shown(frame) : frame, exchange);
  }

  #isAsked({ id }: Frame, exchange: Exchange | undefined): boolean {
    if (exchange !== undefined) return this.#lists.has(exchange);
    for (const list of this.#lists) if (list.id === id) return true;
    return false;
  }

  #shown(list: Frame): Frame {
    return withoutTools(list, this.#isHidden) ?? errorFrame(idToken(list), UNREADABLE_LIST);
  }
}

const UNCLEAR_NAME: RpcError = {
  code: INVALID_PARAMS,
  message: 'The name of the tool can be read in several ways, or is no string; send one member called name.',
};

/** A list in which a hidden tool cannot be found is not shown at all. */
const UNREADABLE_LIST: RpcError = {
  code: INTERNAL_ERROR,
  message: 'The server sent a list of tools that cannot be filtered: it is malformed, or longer than 20000 tools.',
};
