import type { Logger } from 'pino';
import { BridgeError } from '../errors.ts';
import type { ToolDefinition } from '../mcp/classify/tool-definition.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import { toPrintable } from '../printable.ts';
import { quoteWord } from '../process/shown-arguments.ts';
import type { PinFile } from './pin-file.ts';
import {
  type Definition,
  differenceOf,
  MAX_PINNED_NAME_LENGTH,
  MAX_PINNED_TOOLS,
  type PinDifference,
  pinFirst,
} from './pins.ts';

/** Why a tool is hidden: it differs from its pin, or its definition could be read in several ways. */
export type Mismatch = PinDifference | { readonly kind: 'unclear' };

/** The longest part of a tool's name that a message repeats. */
const MAX_SHOWN_NAME = 200;
/** Differences that were logged. Beyond it, the log is silent about further ones. */
const MAX_LOGGED = 1000;

/** The pins of one server. */
export class PinnedServer {
  readonly #file: PinFile;
  /** The server's name in the configuration file, or else its command or its URL. */
  readonly #server: string;
  readonly #log: Pick<Logger, 'info' | 'warn'>;
  readonly #logged = new Set<string>();

  constructor(file: PinFile, server: string, log: Pick<Logger, 'info' | 'warn'>) {
    this.#file = file;
    this.#server = server;
    this.#log = log;
  }

  /** Reads the file again if it has changed. Call this before each decision. */
  look(): void {
    this.#file.look();
  }

  /** Changes with what is pinned. */
  get version(): number {
    return this.#file.version;
  }

  /** False until the tools of the server are pinned. */
  get isPinned(): boolean {
    return this.#file.pins.has(this.#server);
  }

  /** Returns true if there is a tool of this name among the pins. */
  has(tool: string): boolean {
    return this.#file.pins.get(this.#server)?.pinned.has(tool) === true;
  }

  /**
   * Pins all tools at first sight, unless another process has just done so. Rejects with ERR_PIN_UNSURE if there are too
   * many, and with ERR_CONFIG_PINS if the file cannot be written.
   */
  async pinFirst(tools: readonly ToolDefinition[], era: Era): Promise<void> {
    if (tools.length > MAX_PINNED_TOOLS) throw tooManyTools();
    const pinned = new Map<string, Definition>();
    const unclear = new Set<string>();
    for (const { name, digests } of tools) {
      // Clients could show either of two tools with one name.
      const isAnother = digests !== 'unclear' && differenceOf(pinned.get(name), era, digests)?.kind === 'changed';
      if (digests === 'unclear' || isAnother || name.length > MAX_PINNED_NAME_LENGTH) unclear.add(name);
      else pinned.set(name, { [era]: digests });
    }
    for (const name of unclear) pinned.delete(name);
    await this.#file.change((pins) => pinFirst(pins, this.#server, pinned));
    this.#log.info({ tools: pinned.size, file: this.#file.path }, 'pinned the tools of this server at first sight');
  }

  /** Compares a tool as the server has just listed it. A difference is noted, so that it can be accepted. */
  compare({ name, digests }: ToolDefinition, era: Era): Mismatch | undefined {
    if (digests === 'unclear' || name.length > MAX_PINNED_NAME_LENGTH) return UNCLEAR;
    const { pinned, waiting } = this.#file.pins.get(this.#server) ?? {};
    const difference = differenceOf(pinned?.get(name), era, digests);
    const noted = waiting?.get(name)?.[era];
    const isNoted = noted !== undefined && differenceOf({ [era]: noted }, era, digests) === undefined;
    if (difference !== undefined && !isNoted) {
      this.#file.note({ server: this.#server, tool: name, era, digests });
    }
    if (difference === undefined && noted !== undefined) {
      this.#file.note({ server: this.#server, tool: name, era, digests: undefined });
    }
    if (difference !== undefined) this.#tell(name, difference);
    return difference;
  }

  #tell(name: string, difference: PinDifference): void {
    const what = describe(difference);
    const key = `${what} ${name}`;
    if (this.#logged.has(key) || this.#logged.size >= MAX_LOGGED) return;
    this.#logged.add(key);
    const tool = toPrintable(name, MAX_SHOWN_NAME);
    this.#log.warn({ tool }, `hiding a tool of this server: ${what}. To accept it: ${this.#commandFor(name)}`);
  }

  /** Returns the error for a call of a tool that is hidden. */
  refusalOf(name: string, mismatch: Mismatch): BridgeError {
    const tool = JSON.stringify(toPrintable(name, MAX_SHOWN_NAME));
    const wayOut =
      mismatch.kind === 'unclear'
        ? 'Such a tool cannot be pinned; its server has to describe it without doubt.'
        : `If that is right, whoever runs mcp-portage accepts it with: ${this.#commandFor(name)}`;
    return new BridgeError('ERR_PIN_DIFFERS', `The tool ${tool} is not called: ${describe(mismatch)}. ${wayOut}`);
  }

  #commandFor(tool: string): string {
    const isShared = [...this.#file.pins].some(([server, { waiting }]) => server !== this.#server && waiting.has(tool));
    const named = isShared ? `${this.#server}/${tool}` : tool;
    return `mcp-portage pin --accept ${quoteWord(this.#file.path)} ${quoteWord(toPrintable(named, MAX_PINNED_NAME_LENGTH))}`;
  }
}

function describe(mismatch: Mismatch): string {
  switch (mismatch.kind) {
    case 'appeared':
      return "it has appeared since the server's tools were pinned";
    case 'changed':
      return `its ${listOf(mismatch.parts)} ${mismatch.parts.length === 1 ? 'is' : 'are'} not as when it was pinned`;
    case 'unclear':
      return 'its definition can be read in several ways, or not at all';
  }
}

function listOf(parts: readonly string[]): string {
  return parts.length === 1 ? `${parts[0]}` : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}

export function tooManyTools(): BridgeError {
  const message = `The server lists more than ${MAX_PINNED_TOOLS} tools, the most that can be pinned.`;
  return new BridgeError('ERR_PIN_UNSURE', message);
}

const UNCLEAR: Mismatch = { kind: 'unclear' };
