import type { Fields } from '../../mcp/payload.ts';
import type { RpcError } from '../../mcp/rpc-errors.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import type { Exchange } from '../exchange.ts';
import type { InitializeResult } from './initialize-result.ts';

/**
 * Makes a shared server one caller's own: whoever has a seat there acts for that caller. Where the server does not say
 * which call it means, the latest that can be meant is a good enough guess, for no stranger could be shown anything.
 * And what is hidden where strangers share, because it names no owner, is not hidden.
 */
export interface SoleOwner {
  /** What the server is told in `initialize`. */
  readonly capabilities: Fields;
  /** True: a server of this kind was told the wrong thing; `capabilities` is another now, and it must be told anew. */
  redeclare(result: InitializeResult): boolean;
  /** Why nobody may be asked this; undefined: somebody may. */
  refuse(question: Frame): RpcError | undefined;
  /** The call within which the server says this, as far as the message itself tells. */
  callOf(question: Frame): Exchange | undefined;
  /** A request of the server while no call is open that could be asked. `reply` is called once, or not at all. */
  takeOrphan(question: Frame, reply: (answer: Frame) => void): void;
  orphanWithdrawn(id: JsonRpcId): void;
  elicitationCompleted(elicitationId: string): void;
  /** The server announces that one of its lists has changed; all seats hear of it, too. */
  listChanged(method: string | undefined): void;
  /** A child has answered the handshake. */
  served(result: InitializeResult): void;
  /** The child that served is gone, and with it whatever it had asked. */
  lost(): void;
}
