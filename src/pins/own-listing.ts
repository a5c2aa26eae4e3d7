import { BridgeError } from '../errors.ts';
import { type RequestMetadata, stampMetadata } from '../mcp/classify/request-metadata.ts';
import { readDefinitions, type ToolDefinition } from '../mcp/classify/tool-definition.ts';
import { CANCELED, LIST_TOOLS } from '../mcp/vocabulary/methods.ts';
import { readField } from '../mcp/vocabulary/payload.ts';
import { toPrintable } from '../printable.ts';
import { Call, type Lane } from '../relay/call.ts';
import type { Frame } from '../wire/frame.ts';
import { notificationFrame, requestFrame } from '../wire/write-message.ts';
import { tooManyTools } from './pinned-server.ts';
import { MAX_PINNED_TOOLS } from './pins.ts';

/** Time limit for all pages of the list, because calls wait for it. */
export const LIST_TIMEOUT_MS = 30_000;
/** Pages that are read. Lists in use have a few. */
const MAX_PAGES = 200;
/** The longest part of a server's error that is repeated. */
const MAX_SHOWN_ERROR = 200;

export interface OwnListingOptions {
  /** The id of its requests, which nobody else can guess or use. */
  readonly id: string;
  /** The metadata of the message that the listing is for. Undefined in the legacy era, which has none. */
  readonly metadata: RequestMetadata | undefined;
  /** The lane of that message, whose headers the requests carry, because a server may list other tools to others. */
  readonly lane: Lane;
  readonly nowMs: number;
  readonly send: (frame: Frame, call: Call) => void;
  /** Called once with all tools, or with the reason why they are not known. */
  readonly ended: (tools: readonly ToolDefinition[] | BridgeError) => void;
}

/** Asks a server for all its tools, page by page, in the name of the bridge. */
export class OwnListing {
  readonly #options: OwnListingOptions;
  readonly #tools: ToolDefinition[] = [];
  #call: Call;
  #pages = 0;
  #isOver = false;

  constructor(options: OwnListingOptions) {
    this.#options = options;
    this.#call = this.#createCall();
  }

  /** Pages are asked for one after the other, each by a call of its own with the same id. */
  #createCall(): Call {
    const { id, lane, nowMs } = this.#options;
    return new Call(id, LIST_TOOLS, lane, undefined, nowMs);
  }

  start(): void {
    this.#ask(undefined);
  }

  #ask(cursor: string | undefined): void {
    const { id, metadata, send } = this.#options;
    const request = requestFrame(id, LIST_TOOLS, cursor === undefined ? {} : { cursor });
    // No log level is set, because log messages about this request are for no client.
    send(metadata === undefined ? request : stampMetadata(request, { ...metadata, logLevel: undefined }), this.#call);
  }

  /** Returns true if a message of the server is about this request. */
  isAbout(frame: Frame, call: Call | undefined): boolean {
    return call === this.#call || (frame.isResponse && frame.id === this.#options.id);
  }

  /** Called with the server's answer. */
  answered(answer: Frame): void {
    if (this.#isOver) return;
    if (answer.kind === 'error') return this.#end(refused(answer));
    const page = readDefinitions(answer);
    if (page === undefined) return this.#end(UNREADABLE);
    this.#pages += 1;
    for (const tool of page.tools) this.#tools.push(tool);
    if (this.#tools.length > MAX_PINNED_TOOLS || this.#pages > MAX_PAGES) return this.#end(tooManyTools());
    if (page.nextCursor === undefined) return this.#end(this.#tools);
    this.#call.settle();
    this.#call = this.#createCall();
    this.#ask(page.nextCursor);
  }

  /** Called if there is no answer. */
  failed(error: BridgeError): void {
    this.#end(new BridgeError('ERR_PIN_UNSURE', `${UNSURE}: ${error.message}`));
  }

  /** Gives up, and tells the server so. */
  timeOut(): void {
    if (this.#isOver) return;
    const { id, send } = this.#options;
    this.#call.cancel('timeout');
    send(notificationFrame(CANCELED, { requestId: id, reason: 'timed out' }), this.#call);
    this.#end(new BridgeError('ERR_PIN_UNSURE', `${UNSURE}: it did not list them within ${LIST_TIMEOUT_MS / 1000} s.`));
  }

  #end(outcome: readonly ToolDefinition[] | BridgeError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#call.state.kind === 'open') this.#call.settle();
    this.#options.ended(outcome);
  }
}

const UNSURE = "The server's tools cannot be compared with their pins";

function refused(answer: Frame): BridgeError {
  const message = readField(answer, 'message');
  const said = typeof message === 'string' ? `: ${toPrintable(message, MAX_SHOWN_ERROR)}` : '';
  return new BridgeError('ERR_PIN_UNSURE', `${UNSURE}, because it refuses to list them${said}`);
}

const UNREADABLE = new BridgeError('ERR_PIN_UNSURE', `${UNSURE}: its list is malformed, or longer than 20000 tools.`);
